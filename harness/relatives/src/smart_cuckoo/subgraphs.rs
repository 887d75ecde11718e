//! Which subgraph each bucket is in, and which subgraphs are maximal: union–find that can also take an edge away.

/// A disjoint-set forest over the vertices 0, 1, 2, …: union by size, paths halved on the way. The root is a subgraph's
/// id, and carries what is known of it.
///
/// Union–find cannot split a set. What makes that possible here is that the vertices of a set are also chained in a ring:
/// they can all be reached from any one, so that one set can be taken apart and put together anew. Two
/// rings become one by swapping two links.
#[derive(Debug)]
pub struct Subgraphs {
    vertices: Box<[Vertex]>,
    /// Room for `renew`.
    members: Vec<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Vertex {
    /// Itself, for a root.
    parent: u32,
    /// The next in the ring.
    next: u32,
    /// Of the set, for a root.
    size: u32,
    /// Whether the set has as many edges as vertices, for a root.
    maximal: bool,
}

impl Vertex {
    /// A vertex that no edge touches.
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
    /// So many vertices, at most 2^32 − 1, without any edge.
    pub(super) fn new(vertices: usize) -> Self {
        Self {
            vertices: (0..vertices as u32).map(Vertex::alone).collect(),
            members: Vec::new(),
        }
    }

    /// The id of a vertex's subgraph.
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

    /// How many vertices the subgraph of this id has.
    #[inline]
    pub fn size(&self, root: usize) -> usize {
        self.vertices[root].size as usize
    }

    /// Whether the subgraph of this id has as many edges as vertices.
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

    /// Tells a vertex's subgraph anew after an edge of it is gone, and returns how many vertices that were. `edge` gives
    /// the other end of the edge that leaves a vertex.
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

    /// Size in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.vertices) + self.members.capacity() * size_of::<u32>()
    }
}
