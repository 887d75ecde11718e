//! What no filter can do: each line with `//~` is an error of this code, with this text or advice (`main.rs`).

use std::sync::Arc;

use filter::{CuckooFilter, GrowingCuckooFilter};

fn make() {
    CuckooFilter::new(); //~ E0599: with_capacity
    let _ = ["a"].into_iter().collect::<GrowingCuckooFilter>(); //~ E0277: FromIterator
}

fn extend(mut seen: GrowingCuckooFilter) {
    seen.extend(["a"]); //~ E0599: extend
}

fn read(seen: &GrowingCuckooFilter) {
    seen.iter(); //~ E0599: iter
    seen.get("a"); //~ E0599: get
    seen.take("a"); //~ E0599: take
    seen.is_subset(seen); //~ E0599: is_subset
    seen.union(seen); //~ E0599: union
}

fn drop_keys(seen: &mut GrowingCuckooFilter) {
    seen.retain(|_: &str| true); //~ E0599: retain
    seen.drain(); //~ E0599: drain
    seen.reserve(10); //~ E0599: reserve
}

fn shrink(seen: &mut CuckooFilter) {
    seen.shrink_to_fit(); //~ E0599: shrink_to_fit
}

fn insert(seen: &CuckooFilter) {
    let _ = seen.insert(String::from("a")); //~ E0308: &String::from("a")
    let _ = seen.insert(5); //~ E0308: &5
}

fn insert_as_into_set(seen: &CuckooFilter) -> Result<(), filter::InsertError> {
    if seen.insert("a")? {} //~ E0308: expected `bool`, found `()`
    Ok(())
}

fn copy(seen: CuckooFilter, other: CuckooFilter) -> bool {
    let _: CuckooFilter = seen.clone(); //~ E0599: method `try_clone` with a similar name
    seen == other //~ E0369: CuckooFilter
}

#[derive(Clone)]
struct Cloned {
    seen: CuckooFilter, //~ E0277: Clone
}

#[derive(PartialEq)]
struct Compared {
    seen: CuckooFilter, //~ E0369: CuckooFilter
}

#[derive(Default)]
struct Defaults {
    seen: CuckooFilter, //~ E0277: Default
}

fn clear(seen: Arc<CuckooFilter>) {
    seen.clear(); //~ E0596: cannot borrow data in an `Arc` as mutable
}

struct Field {
    seen: CuckooFilter,
}

fn fields() {
    let chosen = CuckooFilter::builder().capacity(10).false_positive_rate(0.01);
    Field { seen: chosen.build().unwrap() }; //~ E0308: DynCuckooFilter
    let seeded = CuckooFilter::with_capacity_and_hasher(10, std::hash::RandomState::new());
    Field { seen: seeded }; //~ E0308: Mixed<RandomState>
}

fn default_layout(_: &CuckooFilter) {}

fn layouts() {
    let other = CuckooFilter::builder().capacity(10).layout::<6, 8>().build().unwrap();
    default_layout(&other); //~ E0308: expected `4`, found `6`
}

fn batch(seen: &CuckooFilter) {
    use filter::Filter;
    let _ = seen.contains_batch(&["a"]); //~ E0061: &mut [bool]
}
