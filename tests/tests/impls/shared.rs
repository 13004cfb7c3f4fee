//! Tests values with several owners.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::ffi::{CStr, OsStr};
use std::path::Path;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use dmd::assert_fully_reported;

use super::boxes::{Polygon, Shape};
use super::{Aligned, Nothing, owns_blocks, text, texts};

#[test]
fn shared_values_alone() {
    assert_fully_reported!((Rc::new(1_u8), Arc::new(2_u8)));
    assert_fully_reported!((Rc::new(Nothing), Arc::new(Nothing)));
    assert_fully_reported!((Rc::new(Aligned(1)), Arc::new(Aligned(2))));
    assert_fully_reported!((Rc::new(text(100)), Arc::new(text(200))));
    assert_fully_reported!((Rc::<str>::from("text"), Arc::<str>::from("text")));
    assert_fully_reported!((Rc::<str>::from(""), Arc::<str>::from("")));
    assert_fully_reported!((texts(7).collect::<Rc<[_]>>(), texts(7).collect::<Arc<[_]>>()));
    assert_fully_reported!((
        Rc::<[Aligned]>::from(vec![]),
        Arc::<[Aligned]>::from(vec![Aligned(1)])
    ));
    assert_fully_reported!((Rc::<Path>::from(Path::new("a")), Arc::<OsStr>::from(OsStr::new("b"))));
    let shape = Polygon { name: Cow::Owned(text(20)), points: Vec::new() };
    assert_fully_reported!(Arc::new(shape) as Arc<dyn Shape>);
}

#[test]
fn pinned_values() {
    assert_fully_reported!((Rc::pin(text(100)), Arc::pin(text(200))));
    assert_fully_reported!(Pin::new(Arc::<[u8]>::default()));
    let shared = Arc::pin(text(100));
    assert_fully_reported!([shared.clone(), shared]);
}

#[test]
fn shared_values_within_one_value() {
    let rc = Rc::new(text(100));
    let weak = Rc::downgrade(&rc);
    assert_fully_reported!((weak.clone(), vec![rc.clone(), rc.clone()], Some(rc), weak));
    let arc: Arc<[String]> = texts(5).collect();
    let weak = Arc::downgrade(&arc);
    assert_fully_reported!(((), weak.clone(), [arc.clone(), arc.clone(), arc], weak));
}

#[test]
fn weak_owners_keep_the_block_alone() {
    assert_fully_reported!((std::rc::Weak::<String>::new(), std::sync::Weak::<String>::new()));
    assert_fully_reported!(Rc::downgrade(&Rc::new(text(100))));
    assert_fully_reported!(Arc::downgrade(&Arc::new(text(100))));
    assert_fully_reported!(Rc::downgrade(&Rc::new(Aligned(1))));
    assert_fully_reported!(Arc::downgrade(&Arc::new(Nothing)));
    let weak = Arc::downgrade(&Arc::new([1_u64; 20]));
    assert_fully_reported!([weak.clone(), weak.clone(), weak]);
    // While there is another owner, it is not ours.
    let elsewhere = Rc::new(text(100));
    owns_blocks(&Rc::downgrade(&elsewhere), 0);
}

/// Std keeps one block for all of these, which is not on the heap.
#[test]
fn shared_values_that_are_statics_own_nothing() {
    assert_fully_reported!((Arc::<str>::default(), Arc::<CStr>::default()));
    assert_fully_reported!((Arc::<[u8]>::default(), Arc::<[u128]>::default()));
    assert_fully_reported!((Arc::<[String]>::default(), Arc::<[Aligned]>::default()));
    assert_fully_reported!((Rc::<str>::default(), Rc::<CStr>::default(), Rc::<[u8]>::default()));
}

#[test]
fn measuring_takes_no_memory_where_nothing_is_shared() {
    let texts = || (0..100).map(|length| "t".repeat(length));
    let owners: Vec<Arc<String>> = texts().map(Arc::new).collect();
    let pinned: Vec<Pin<Rc<String>>> = texts().map(Rc::pin).collect();
    let map: HashMap<String, Vec<String>> = texts().map(|text| (text, texts().collect())).collect();
    let ordered: BTreeMap<usize, String> = texts().enumerate().collect();
    let value = (owners, pinned, map, ordered);
    dmd::testing::Budget::new().max_blocks(0).assert(|_| memreport::measure(&value));
    let shared = (Arc::clone(&value.0[9]), value);
    let spent = dmd::testing::Budget::new().assert(|_| memreport::measure(&shared));
    assert!(spent.blocks > 0, "what is shared is remembered");
}
