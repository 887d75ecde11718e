//! Writes filters for programs in other languages, and reads theirs: used by the tests of those.
//!
//! `share write FOLDER MEMORY` or `share read FOLDER MEMORY NAME`. MEMORY is a folder on tmpfs, for filters that processes share.

use std::env::args;
use std::error::Error;
use std::path::PathBuf;

use filter::{CuckooFilter, DynCuckooFilter, ExpiringCuckooFilter, Filter, GrowingCuckooFilter};
use lfcf::any::AnyFilter;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["write", folder, memory] => {
            write(folder.into())?;
            share(memory.into())
        }
        ["read", folder, memory, name] => {
            read(folder.into(), name)?;
            read_shared(memory.into(), name)
        }
        _ => Err("usage: share write FOLDER MEMORY | share read FOLDER MEMORY NAME".into()),
    }
}

/// The numbers from -500 to 499, and texts and bytes of them.
fn write(folder: PathBuf) -> Result<(), Box<dyn Error>> {
    let expiring = AnyFilter::expiring(5_000)?;
    let forgets = expiring.that_expires().expect("it forgets");
    forgets.advance_to(7)?;
    let filters = [
        ("fixed", &AnyFilter::fixed(5_000, 0.002)?),
        ("growing", &AnyFilter::growing(0, None)?),
        ("expiring", &expiring),
    ];
    for (kind, any) in filters {
        let filter = &any.filter()?;
        for number in -500_i64..500 {
            filter.insert(&number)?;
            filter.insert(&number.to_string())?;
            filter.insert(number.to_string().as_bytes())?;
        }
        filter.save(folder.join(format!("rust-{kind}")))?;
    }
    Ok(())
}

/// What another program made of them: it added the numbers from 500 to 999, and, but in the filter that
/// forgets, removed those below 0.
fn read(folder: PathBuf, name: &str) -> Result<(), Box<dyn Error>> {
    let path = |kind| folder.join(format!("{name}-{kind}"));
    let expiring = ExpiringCuckooFilter::load(path("expiring"))?;
    assert_eq!(expiring.period(), 8, "the other program advances once");
    let fixed = DynCuckooFilter::load(path("fixed"))?;
    let growing = GrowingCuckooFilter::load(path("growing"))?;
    let removed = |filter: &dyn Filter| {
        let filter = &filter;
        let is_removed = |number: &i64| !filter.contains(number);
        (-500..0).filter(is_removed).count()
    };
    assert!(removed(&fixed) > 480 && removed(&growing) > 480, "too few");
    let filters: [Box<dyn Filter>; 3] = [Box::new(fixed), Box::new(growing), Box::new(expiring)];
    for filter in filters {
        for number in 0_i64..1_000 {
            assert!(filter.contains(&number), "{number} is missing");
        }
        for number in -500_i64..500 {
            assert!(filter.contains(&number.to_string()));
            assert!(filter.contains(number.to_string().as_bytes()));
        }
    }
    Ok(())
}

/// The numbers from 0 to 999.
fn share(memory: PathBuf) -> Result<(), Box<dyn Error>> {
    let builder = CuckooFilter::builder().capacity(5_000);
    let filter = builder.open_or_create_shared(memory.join("rust"))?;
    (0..1_000).try_for_each(|number| Ok(filter.insert(&number)?))
}

/// The same, which another program has inserted.
fn read_shared(memory: PathBuf, name: &str) -> Result<(), Box<dyn Error>> {
    let filter = CuckooFilter::builder().open_shared(memory.join(name))?;
    for number in 0..1_000 {
        assert!(filter.contains(&number), "{number} is missing");
    }
    assert_eq!(filter.recount(), 1_000);
    Ok(())
}
