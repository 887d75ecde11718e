//! Moves marks that would hide each other apart, sideways.

use super::svg::Place;

/// What is drawn at a place: for which line, and from where down to where.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drawn {
    pub(super) line: usize,
    pub(super) place: Place,
    pub(super) top: f64,
    pub(super) bottom: f64,
    /// How far it may be moved.
    pub(super) most: f64,
}

/// Returns how far to move each to the right: the least that keeps it `distance` from those of
/// other lines before it, or, if there is no such room, what keeps it farthest from them.
pub(super) fn shifts(drawn: &[Drawn], distance: f64) -> Vec<f64> {
    let mut done: Vec<(f64, Drawn)> = Vec::new();
    for &one in drawn {
        let nearest = |x: f64| {
            let hidden = done
                .iter()
                .filter(|(_, of)| of.line != one.line)
                .filter(|(_, of)| of.top < one.bottom && one.top < of.bottom);
            let gaps = hidden.map(|(other, _)| (other - x).abs());
            gaps.fold(f64::INFINITY, f64::min)
        };
        let tries = (0..).map(|step| f64::from(step) * distance / 8.0);
        let tries = tries
            .take_while(|&by| by <= one.most)
            .flat_map(|by| [by, -by]);
        let (x, _) = one.place;
        let mut best = (0.0, f64::NEG_INFINITY);
        for by in tries {
            let gap = nearest(x + by).min(distance);
            if gap > best.1 + 1e-9 {
                best = (by, gap);
            }
        }
        done.push((x + best.0, one));
    }
    let shift = |((x, _), of): ((f64, Drawn), &Drawn)| x - of.place.0;
    done.into_iter().zip(drawn).map(shift).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: usize, x: f64, top: f64, bottom: f64) -> Drawn {
        Drawn {
            line,
            place: (x, top),
            top,
            bottom,
            most: 10.0,
        }
    }

    #[test]
    fn only_what_would_be_hidden_is_moved() {
        let all = [
            at(0, 10.0, 0.0, 5.0),
            at(0, 11.0, 0.0, 5.0),
            at(1, 10.0, 20.0, 25.0),
            at(2, 10.0, 4.0, 9.0),
            at(2, 30.0, 4.0, 9.0),
        ];
        assert_eq!(shifts(&all, 4.0), [0.0, 0.0, 0.0, -4.0, 0.0]);
        let alike = [0, 1, 2, 3].map(|line| at(line, 10.0, 0.0, 5.0));
        assert_eq!(shifts(&alike, 4.0), [0.0, 4.0, -4.0, 8.0]);
        // Without enough room, none stands where another does.
        let close = alike.map(|of| Drawn { most: 3.0, ..of });
        assert_eq!(shifts(&close, 4.0), [0.0, 3.0, -3.0, 1.5]);
    }
}
