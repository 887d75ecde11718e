//! Computes what a filter of a given number of keys takes, at which false positive rate.

use std::f64::consts::LN_2;

use anyhow::Result;
use filter::CuckooFilter;
use subject::wording::counted;

/// A filter that would hold the keys.
#[derive(Debug, Clone, PartialEq)]
pub struct Size {
    /// Name of the filter.
    pub filter: &'static str,
    /// Its parameters.
    pub parameters: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// The expected share of absent keys that it finds when it holds all keys.
    pub rate: f64,
    /// Whether keys can be removed from it.
    pub removes: bool,
}

/// Returns the sizes of filters of `keys` keys that find at most `rate` of the absent ones, or
/// nearly so: a Bloom filter of 1.44 n log2(1 / rate) bits, a counting Bloom filter with four bits
/// in place of each, and our cuckoo filter in the smallest layout that is accurate enough.
///
/// # Errors
///
/// Fails if the rate is not between 0 and 1 or is too low for every layout, or if there are more
/// keys than a table can have.
pub fn sizes(keys: f64, rate: f64) -> Result<Vec<Size>> {
    let keys = keys.max(1.0);
    // It takes no memory from the system before it is written to.
    let cuckoo = CuckooFilter::builder()
        .capacity(keys.ceil() as usize)
        .false_positive_rate(rate)
        .build()?;
    let (slots, bits_of_slot) = cuckoo.layout();

    let bits = (keys * (1.0 / rate).log2() / LN_2).ceil();
    let hashes = (1.0 / rate).log2().round().max(1.0);
    let of_bloom = (1.0 - (-hashes * keys / bits).exp()).powf(hashes);
    let bytes = |bits: f64| (bits / 8.0).ceil() as u64;
    Ok(vec![
        Size {
            filter: "Bloom",
            parameters: counted(hashes, "hash"),
            bytes: bytes(bits),
            rate: of_bloom,
            removes: false,
        },
        Size {
            filter: "counting Bloom",
            parameters: format!("{}, 4-bit counters", counted(hashes, "hash")),
            bytes: bytes(4.0 * bits),
            rate: of_bloom,
            removes: true,
        },
        Size {
            filter: "cuckoo (ours)",
            parameters: format!("{slots} slots of {bits_of_slot} bits"),
            bytes: cuckoo.memory_bytes() as u64,
            rate: cuckoo.false_positive_rate() * keys / cuckoo.capacity() as f64,
            removes: true,
        },
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with the literature's numbers for 1 in 512, 12.98 bits per key and nine hashes, and
    /// with our own 16.8.
    #[test]
    fn sizes_are_those_of_the_formulas() {
        let rate = 1.0 / 512.0;
        let [bloom, counting, cuckoo] = sizes(1e6, rate * 1.001).unwrap().try_into().unwrap();
        let bits_a_key = |size: &Size| 8.0 * size.bytes as f64 / 1e6;
        assert!((bits_a_key(&bloom) - 12.98).abs() < 0.01, "{bloom:?}");
        assert!((bits_a_key(&counting) - 51.9).abs() < 0.1, "{counting:?}");
        assert!((bits_a_key(&cuckoo) - 16.84).abs() < 0.1, "{cuckoo:?}");
        assert_eq!(bloom.parameters, "9 hashes");
        assert_eq!(cuckoo.parameters, "4 slots of 12 bits");
        assert!((bloom.rate / rate - 1.0).abs() < 0.01, "{bloom:?}");
        assert!((cuckoo.rate / rate - 0.95).abs() < 0.01, "{cuckoo:?}");
    }

    #[test]
    fn a_lower_rate_takes_another_layout_and_an_impossible_one_is_an_error() {
        let lower = sizes(1_000.0, 1e-4).unwrap();
        assert_eq!(lower[2].parameters, "3 slots of 16 bits");
        assert_eq!(lower[0].parameters, "13 hashes");
        for rate in [0.0, -1.0, 1.0, f64::NAN, 1e-12] {
            let refused = sizes(1_000.0, rate).unwrap_err().to_string();
            assert!(refused.contains("false positive rate of"), "{refused}");
        }
        assert!(sizes(1e18, 0.01).is_err());
    }
}
