//! Tests that compare SmartCuckoo and its plain rival with brute force, a list of keys and a search
//! of the graph that they form, on random sequences in small tables of every size.

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::*;

/// Enough for every case, and for subgraphs to be cut and joined in all ways, yet few enough for an
/// exhaustive search.
const MOST_BUCKETS: usize = 12;
const SEQUENCES: u64 = 100_000;
const LONGEST: usize = 60;

/// The keys that a table must hold, each with its two buckets as a set of bits.
struct Truth {
    buckets: usize,
    edges: Vec<(Key, u32)>,
}

/// The vertices of a subgraph, as a set of bits, and the number of its edges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Component {
    vertices: u32,
    edges: u32,
}

impl Component {
    fn is_new(self) -> bool {
        self.edges == 0
    }

    fn is_maximal(self) -> bool {
        self.edges == self.vertices.count_ones()
    }
}

impl Truth {
    fn new(buckets: usize) -> Self {
        Self {
            buckets,
            edges: Vec::new(),
        }
    }

    fn component(&self, bucket: usize) -> Component {
        let mut vertices = 1 << bucket;
        loop {
            let mut edges = 0;
            let mut reached = vertices;
            for &(_, ends) in &self.edges {
                if ends & vertices != 0 {
                    reached |= ends;
                    edges += 1;
                }
            }
            if reached == vertices {
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

    fn case([first, second]: [Component; 2]) -> Case {
        let vertices = first.vertices | second.vertices;
        let new = if first == second {
            u32::from(first.is_new())
        } else {
            u32::from(first.is_new()) + u32::from(second.is_new())
        };
        match (new, vertices == first.vertices) {
            (2, _) => Case::TwoNew,
            (1, _) => Case::OneNew,
            (_, true) if first.is_maximal() => Case::SameMaximal,
            (_, true) => Case::SameNonMaximal,
            (_, false) => match u32::from(first.is_maximal()) + u32::from(second.is_maximal()) {
                0 => Case::BothNonMaximal,
                1 => Case::OneMaximal,
                _ => Case::BothMaximal,
            },
        }
    }

    fn remove(&mut self, key: Key) -> bool {
        let found = self.edges.iter().position(|&(of, _)| of == key);
        found.map(|at| self.edges.swap_remove(at)).is_some()
    }

    /// Checks that every key is in one of its buckets, and that nothing else is in the table.
    fn holds(&self, buckets: &Buckets) {
        let mut left: Vec<Key> = self.edges.iter().map(|&(key, _)| key).collect();
        for bucket in 0..self.buckets {
            if let Some(key) = buckets.key_in(bucket) {
                assert!(buckets.candidates(key).contains(&bucket));
                let at = left.iter().position(|&of| of == key);
                left.swap_remove(at.expect("a key that is not to be there"));
            }
        }
        assert_eq!(left, [], "keys are missing");
        assert!(
            self.edges
                .iter()
                .all(|&(key, _)| buckets.find(key).is_some())
        );
    }

    /// Checks that the subgraphs are the components, with the right sizes and room.
    fn matches(&self, table: &mut SmartCuckoo) {
        let mut roots = 0u32;
        let mut components = 0;
        for bucket in 0..self.buckets {
            let component = self.component(bucket);
            let part = table.part(bucket);
            roots |= 1 << part.root;
            assert_eq!(part.size, component.vertices.count_ones() as usize);
            assert_eq!(part.maximal, component.is_maximal());
            assert_ne!(component.vertices & 1 << part.root, 0, "a root elsewhere");
            if component.vertices.trailing_zeros() as usize == bucket {
                components += 1;
                let members = (0..self.buckets).filter(|&of| component.vertices & 1 << of != 0);
                let empty = members.filter(|&of| table.buckets.key_in(of).is_none());
                assert_eq!(empty.count(), usize::from(!component.is_maximal()));
            }
        }
        assert_eq!(roots.count_ones(), components);
    }
}

/// Inserts and removes on a small table, of keys that are often the same, or absent.
struct Sequence {
    random: SmallRng,
    buckets: usize,
    length: usize,
    keys: Vec<Key>,
}

impl Sequence {
    fn new(seed: u64) -> Self {
        let mut random = SmallRng::seed_from_u64(seed);
        let buckets = random.random_range(2..=MOST_BUCKETS);
        // Every eighth sequence is long.
        let most = if seed.is_multiple_of(8) { LONGEST } else { 16 };
        let length = random.random_range(1..=most);
        let keys = (0..2 * buckets).map(|_| Key::new(random.random()).unwrap());
        Self {
            buckets,
            length,
            keys: keys.collect(),
            random,
        }
    }

    /// Returns a key, and whether to insert it.
    fn next(&mut self) -> (Key, bool) {
        let key = self.keys[self.random.random_range(0..self.keys.len())];
        (key, self.random.random_ratio(2, 3))
    }
}

/// Counts the buckets whose key differs.
fn changed(before: &Buckets, after: &Buckets) -> u64 {
    let changed = |&bucket: &usize| before.key_in(bucket) != after.key_in(bucket);
    (0..before.number()).filter(changed).count() as u64
}

#[test]
fn smart_cuckoo_is_right_about_every_insert_whatever_came_before() {
    let mut seen = [0u32; Case::ALL.len()];
    for seed in 0..SEQUENCES {
        let mut sequence = Sequence::new(seed);
        let mut truth = Truth::new(sequence.buckets);
        let mut table = SmartCuckoo::new(sequence.buckets).unwrap();
        for _ in 0..sequence.length {
            let (key, insert) = sequence.next();
            let candidates = table.buckets.candidates(key);
            if !insert {
                assert_eq!(
                    table.remove(key).is_some(),
                    truth.remove(key),
                    "seed {seed}"
                );
                continue;
            }
            let components = candidates.map(|bucket| truth.component(bucket));
            let case = table.case(key);
            assert_eq!(case, Truth::case(components), "seed {seed}");
            seen[case as usize] += 1;
            let (before, promised) = (table.buckets.clone(), table.kicks(key));
            let insertion = table.insert(key);
            assert_eq!(insertion.placed, Truth::has_room(components), "seed {seed}");
            if insertion.placed {
                assert_eq!(promised, Some(insertion.kicks), "seed {seed}");
                assert!(changed(&before, &table.buckets) <= insertion.kicks + 1);
                // The path goes through the smaller of two trees.
                let sizes = components.map(|component| component.vertices.count_ones());
                let most = u64::from(sizes[0].min(sizes[1])) - 1;
                assert!(case != Case::BothNonMaximal || insertion.kicks <= most);
                truth
                    .edges
                    .push((key, 1 << candidates[0] | 1 << candidates[1]));
            } else {
                assert_eq!((promised, insertion.kicks), (None, 0), "seed {seed}");
                assert_eq!(table.buckets, before, "seed {seed}");
            }
        }
        truth.holds(&table.buckets);
        truth.matches(&mut table);
    }
    assert!(seen.iter().all(|&times| times > 10_000), "{seen:?}");
}

/// With enough patience it refuses exactly what must be refused; with little it may refuse more,
/// but loses nothing.
#[test]
fn plain_cuckoo_undoes_what_it_gives_up() {
    let mut refused = 0;
    for seed in 0..SEQUENCES / 10 {
        let patient = seed % 2 == 0;
        let mut sequence = Sequence::new(seed);
        let mut truth = Truth::new(sequence.buckets);
        let limit = if patient { 4 * MOST_BUCKETS as u64 } else { 3 };
        let mut table = PlainCuckoo::with_limit(sequence.buckets, limit).unwrap();
        for _ in 0..sequence.length {
            let (key, insert) = sequence.next();
            if !insert {
                assert_eq!(
                    table.remove(key).is_some(),
                    truth.remove(key),
                    "seed {seed}"
                );
                continue;
            }
            let candidates = table.buckets().candidates(key);
            let room = Truth::has_room(candidates.map(|bucket| truth.component(bucket)));
            let before = table.buckets().clone();
            let Insertion { placed, kicks } = table.insert(key);
            assert!(placed == room || !placed && !patient, "seed {seed}");
            if placed {
                // A path may turn back and undo some of its kicks.
                assert!(kicks <= limit && changed(&before, table.buckets()) <= kicks + 1);
                truth
                    .edges
                    .push((key, 1 << candidates[0] | 1 << candidates[1]));
            } else {
                refused += 1;
                assert_eq!((kicks, table.buckets()), (limit, &before), "seed {seed}");
            }
        }
        truth.holds(table.buckets());
    }
    assert!(refused > 1_000, "{refused}");
}
