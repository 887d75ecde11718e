//! Which subgraph each bucket is in, and which subgraphs are maximal: union–find that can also
//! remove an edge.

/// A disjoint-set forest over the vertices 0, 1, 2, …, with union by size and path halving. The
/// root is a subgraph's id, and holds what is known of the subgraph.
///
/// Union–find cannot split a set. To make that possible, the vertices of a set are also linked in a
/// ring. All of them can be reached from any one, so one set can be taken apart and put together
/// again. Two rings become one by swapping two links.
#[derive(Debug)]
pub struct Subgraphs {
    vertices: Box<[Vertex]>,
    /// Scratch space for `renew`.
    members: Vec<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Vertex {
    /// The parent; a root is its own.
    parent: u32,
    /// The next vertex in the ring.
    next: u32,
    /// The size of the set; valid for a root.
    size: u32,
    /// Whether the set has as many edges as vertices; valid for a root.
    maximal: bool,
}

impl Vertex {
    /// Creates a vertex without edges.
    fn alone(at: u32) -> Self {
        Self {
            parent: at,
            next: at,
            size: 1,
            maximal: false,
        }
    }
}

impl Subgraphs {
    /// Creates this many vertices, at most 2^32 − 1, without edges.
    pub(super) fn new(vertices: usize) -> Self {
        Self {
            vertices: (0..vertices as u32).map(Vertex::alone).collect(),
            members: Vec::new(),
        }
    }

    /// Returns the id of a vertex's subgraph.
    #[inline]
    pub fn root(&mut self, vertex: usize) -> usize {
        let mut at = vertex;
        loop {
            let parent = self.vertices[at].parent as usize;
            if parent == at {
                return at;
            }
            let grandparent = self.vertices[parent].parent;
            self.vertices[at].parent = grandparent;
            at = grandparent as usize;
        }
    }

    /// Returns the number of vertices in the subgraph with this id.
    #[inline]
    pub fn size(&self, root: usize) -> usize {
        self.vertices[root].size as usize
    }

    /// Returns whether the subgraph with this id has as many edges as vertices.
    #[inline]
    pub fn is_maximal(&self, root: usize) -> bool {
        self.vertices[root].maximal
    }

    /// Adds an edge, for which there must be room.
    #[inline]
    pub(super) fn join(&mut self, first: usize, second: usize) {
        let (mut above, mut below) = (self.root(first), self.root(second));
        if above == below {
            self.vertices[above].maximal = true;
            return;
        }
        if self.size(above) < self.size(below) {
            (above, below) = (below, above);
        }
        let joined = self.vertices[below];
        let root = self.vertices[above];
        self.vertices[below].parent = above as u32;
        self.vertices[below].next = root.next;
        self.vertices[above] = Vertex {
            parent: root.parent,
            next: joined.next,
            size: root.size + joined.size,
            maximal: root.maximal || joined.maximal,
        };
    }

    /// Works out a vertex's subgraph anew after one of its edges was removed, and returns the
    /// number of vertices visited. `edge` returns the other end of a vertex's outgoing edge.
    pub(super) fn renew(&mut self, vertex: usize, edge: impl Fn(usize) -> Option<usize>) -> usize {
        let mut members = std::mem::take(&mut self.members);
        members.clear();
        let mut at = vertex as u32;
        loop {
            let next = self.vertices[at as usize].next;
            self.vertices[at as usize] = Vertex::alone(at);
            members.push(at);
            debug_assert!(members.len() <= self.vertices.len(), "the ring is open");
            at = next;
            if at as usize == vertex {
                break;
            }
        }
        for &member in &members {
            if let Some(other) = edge(member as usize) {
                self.join(member as usize, other);
            }
        }
        let renewed = members.len();
        self.members = members;
        renewed
    }

    /// Returns the size in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.vertices) + self.members.capacity() * size_of::<u32>()
    }
}
