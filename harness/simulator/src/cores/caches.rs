//! Set-associative caches that replace the line used longest ago.

use crate::model::Level;

pub(crate) const LINE_BYTES: usize = 64;

/// A cache of lines, each known by its number.
#[derive(Debug)]
pub(crate) struct Cache {
    ways: usize,
    /// The lines of each set, the last used first.
    sets: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl Cache {
    pub(crate) fn new(level: &Level) -> Self {
        let lines = (level.kib * 1024 / LINE_BYTES).max(level.ways);
        let sets = lines / level.ways;
        Self {
            ways: level.ways,
            sets: vec![NONE; sets * level.ways],
        }
    }

    fn set(&mut self, line: u32) -> &mut [u32] {
        let sets = self.sets.len() / self.ways;
        let start = (line as usize % sets) * self.ways;
        &mut self.sets[start..start + self.ways]
    }

    /// Uses a line. Returns whether it was there, and the line that made room for it.
    #[inline]
    pub(crate) fn touch(&mut self, line: u32) -> (bool, Option<u32>) {
        let set = self.set(line);
        if set[0] == line {
            return (true, None);
        }
        match set.iter().position(|&other| other == line) {
            Some(place) => {
                set[..=place].rotate_right(1);
                (true, None)
            }
            None => {
                let last = set[set.len() - 1];
                set.rotate_right(1);
                set[0] = line;
                (false, (last != NONE).then_some(last))
            }
        }
    }

    /// Drops a line, if it is there.
    pub(crate) fn drop(&mut self, line: u32) {
        let set = self.set(line);
        if let Some(place) = set.iter().position(|&other| other == line) {
            set[place..].rotate_left(1);
            set[set.len() - 1] = NONE;
        }
    }

    pub(crate) fn holds(&mut self, line: u32) -> bool {
        self.set(line).contains(&line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_used_longest_ago_is_replaced() {
        let level = Level {
            kib: 1,
            ways: 4,
            ns: 1.0,
        };
        // 16 lines in four sets; lines 0, 4, 8, 12 and 16 share one.
        let mut cache = Cache::new(&level);
        for line in [0, 4, 8, 12] {
            assert_eq!(cache.touch(line), (false, None));
        }
        assert_eq!(cache.touch(0), (true, None));
        assert_eq!(cache.touch(1), (false, None));
        assert_eq!(cache.touch(16), (false, Some(4)));
        assert!(cache.holds(0) && cache.holds(16) && !cache.holds(4));
        cache.drop(0);
        cache.drop(4);
        assert!(cache.holds(8) && cache.holds(16) && !cache.holds(0));
        assert_eq!(cache.touch(20), (false, None));
    }
}
