//! Compares SmartCuckoo and its plain rival with brute force, a list of keys and a search of the
//! graph that they form, on random sequences in small tables of every size.

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::*;

/// Few enough for an exhaustive search, and enough for subgraphs to be cut and joined in all ways.
const MAX_BUCKETS: usize = 12;

/// The keys that a table must hold, each with its two buckets as a set of bits.
struct Truth(Vec<(Key, u32)>);

/// The vertices of a subgraph, as a set of bits, and the number of its edges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Component {
    vertices: u32,
    edges: u32,
}

impl Component {
    fn size(self) -> u32 {
        self.vertices.count_ones()
    }
}

impl Truth {
    fn component(&self, bucket: usize) -> Component {
        let mut vertices = 1 << bucket;
        loop {
            let inside = |&&(_, ends): &&(Key, u32)| ends & vertices != 0;
            let edges = self.0.iter().filter(inside);
            let reached = edges.clone().fold(vertices, |all, (_, ends)| all | ends);
            if reached == vertices {
                let edges = edges.count() as u32;
                return Component { vertices, edges };
            }
            vertices = reached;
        }
    }

    /// Returns whether every component would still have at most as many keys as buckets.
    fn has_room([first, second]: [Component; 2]) -> bool {
        let shared = first == second;
        let edges = first.edges + if shared { 0 } else { second.edges };
        edges < (first.vertices | second.vertices).count_ones()
    }

    fn remove(&mut self, key: Key) -> bool {
        let found = self.0.iter().position(|&(of, _)| of == key);
        found.map(|at| self.0.swap_remove(at)).is_some()
    }

    /// Checks that every key is in one of its buckets, and that nothing else is in the table.
    fn holds(&self, buckets: &Buckets) {
        let all = (0..buckets.number()).filter_map(|at| Some((at, buckets.key_in(at)?)));
        let mut inside: Vec<_> = all
            .inspect(|&(at, key)| assert!(buckets.candidates(key).contains(&at)))
            .map(|(_, key)| key)
            .collect();
        let mut expected: Vec<_> = self.0.iter().map(|&(key, _)| key).collect();
        inside.sort_unstable();
        expected.sort_unstable();
        assert_eq!(inside, expected);
    }

    /// Checks that the subgraphs are the components.
    fn matches(&self, table: &mut SmartCuckoo) {
        for bucket in 0..table.buckets.number() {
            let component = self.component(bucket);
            let root = table.subgraphs.find(bucket);
            assert_eq!(root.size, component.size());
            assert_eq!(root.maximal, component.edges == component.size());
            assert_ne!(component.vertices & 1 << root.parent, 0, "a root elsewhere");
        }
    }
}

/// Inserts and removes keys that are often the same, or absent, in tables of each size. Calls
/// `inserted` with the seed, the components that an insert met and its outcome, and `ended` with the
/// keys that must be in, and the table. Returns how many keys were refused.
fn run<T: CuckooTable>(
    sequences: u64,
    make: impl Fn(usize, u64) -> T,
    inserted: impl Fn(u64, [Component; 2], Insertion),
    ended: impl Fn(&Truth, &mut T),
) -> u64 {
    let mut refused = 0;
    for seed in 0..sequences {
        let mut random = SmallRng::seed_from_u64(seed);
        let buckets = random.random_range(2..=MAX_BUCKETS);
        // Every eighth sequence is long.
        let most = if seed.is_multiple_of(8) { 60 } else { 16 };
        let keys = (0..2 * buckets).map(|_| Key::new(random.random()).unwrap());
        let keys: Vec<_> = keys.collect();
        let (mut truth, mut table) = (Truth(Vec::new()), make(buckets, seed));
        for _ in 0..random.random_range(1..=most) {
            let key = keys[random.random_range(0..keys.len())];
            if random.random_ratio(1, 3) {
                assert_eq!(table.remove(key), truth.remove(key), "{seed}");
                continue;
            }
            let candidates = table.buckets().candidates(key);
            let before = table.buckets().clone();
            let insertion = table.insert(key);
            let after = table.buckets();
            inserted(seed, candidates.map(|at| truth.component(at)), insertion);
            if insertion.placed {
                // A path may turn back and undo some of its kicks.
                let changed = |&at: &usize| before.key_in(at) != after.key_in(at);
                let changed = (0..buckets).filter(changed).count() as u64;
                assert!(changed <= insertion.kicks + 1, "{seed}");
                let ends = candidates.iter().fold(0, |ends, bucket| ends | 1 << bucket);
                truth.0.push((key, ends));
            } else {
                refused += 1;
                assert_eq!(*after, before, "{seed}");
            }
        }
        truth.holds(table.buckets());
        ended(&truth, &mut table);
    }
    refused
}

#[test]
fn smart_cuckoo_predicts_every_insert() {
    let refused = run(
        100_000,
        |buckets, _| SmartCuckoo::new(buckets).unwrap(),
        |seed, components, insertion| {
            let room = Truth::has_room(components);
            assert_eq!(insertion.placed, room, "seed {seed}");
            // The path goes through a tree, and through the smaller one of two.
            let trees = components.iter().filter(|it| it.edges < it.size());
            let most = trees.map(|it| it.size() - 1).min().unwrap_or(0);
            assert!(insertion.kicks <= most.into(), "seed {seed}");
        },
        Truth::matches,
    );
    assert!(refused > 10_000, "{refused}");
}

/// With enough patience it refuses exactly what must be refused; it never loses a key.
#[test]
fn plain_cuckoo_undoes_what_it_gives_up() {
    let limit = |seed| [4 * MAX_BUCKETS as u64, 3][seed as usize % 2];
    let refused = run(
        10_000,
        |buckets, seed| PlainCuckoo::with_limit(buckets, limit(seed)).unwrap(),
        |seed, components, Insertion { placed, kicks }| {
            let (patient, room) = (seed % 2 == 0, Truth::has_room(components));
            assert!(placed == room || !placed && !patient, "seed {seed}");
            assert!(kicks == limit(seed) || placed && kicks < limit(seed));
        },
        |_, _| (),
    );
    assert!(refused > 1_000, "{refused}");
}

#[test]
fn subject_has_twice_as_many_buckets_as_slots() {
    let table = SingleThreaded::<SmartCuckoo>::with_buckets(500).unwrap();
    assert_eq!(table.0.buckets.number(), 2 * 500 * SLOTS_PER_BUCKET);
}
