//! Which subgraph each bucket is in, and which subgraphs are maximal: union–find that can also
//! remove an edge.

/// A disjoint-set forest over the vertices 0, 1, 2, …, with union by size and path halving. The
/// root of a set stands for its subgraph.
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

/// A vertex. That of a root also says what is known of its subgraph.
#[derive(Debug, Clone, Copy)]
pub(super) struct Vertex {
    /// The parent; a root is its own.
    pub(super) parent: u32,
    /// The next vertex in the ring.
    next: u32,
    /// Number of vertices, in a root.
    pub(super) size: u32,
    /// True in a root if there are as many edges as vertices.
    pub(super) maximal: bool,
}

impl Vertex {
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

    #[inline]
    pub(super) fn find(&mut self, mut vertex: usize) -> Vertex {
        loop {
            let parent = self.vertices[vertex].parent as usize;
            if parent == vertex {
                return self.vertices[vertex];
            }
            let grandparent = self.vertices[parent].parent;
            self.vertices[vertex].parent = grandparent;
            vertex = grandparent as usize;
        }
    }

    /// Adds an edge, for which there must be room.
    #[inline]
    pub(super) fn join(&mut self, first: usize, second: usize) {
        let (mut above, mut below) = (self.find(first), self.find(second));
        if above.size < below.size {
            (above, below) = (below, above);
        }
        let root = &mut self.vertices[above.parent as usize];
        if above.parent == below.parent {
            root.maximal = true;
            return;
        }
        root.next = below.next;
        root.size = above.size + below.size;
        root.maximal = above.maximal || below.maximal;
        let joined = &mut self.vertices[below.parent as usize];
        joined.parent = above.parent;
        joined.next = above.next;
    }

    /// Works out a vertex's subgraph again after one of its edges was removed. `edge` returns
    /// the other end of a vertex's outgoing edge.
    pub(super) fn renew(&mut self, vertex: usize, edge: impl Fn(usize) -> Option<usize>) {
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
        self.members = members;
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.vertices) + self.members.capacity() * size_of::<u32>()
    }
}
