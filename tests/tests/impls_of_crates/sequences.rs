//! Tests vectors and queues.

use arrayvec::{ArrayString, ArrayVec};
use crossbeam_queue::{ArrayQueue, SegQueue};
use dmd::assert_fully_reported;
use either::Either;
use smallvec::SmallVec;
use thin_vec::ThinVec;
use tinyvec::TinyVec;

use super::{Aligned, owns_blocks, text, texts};

#[test]
fn small_vectors() {
    assert_fully_reported!(texts(3).collect::<SmallVec<[String; 4]>>());
    assert_fully_reported!(texts(5).collect::<SmallVec<[String; 4]>>());
    assert_fully_reported!(SmallVec::<[u8; 4]>::with_capacity(1000));
    assert_fully_reported!((0..9).map(Aligned).collect::<SmallVec<[Aligned; 1]>>());
    let mut back: SmallVec<[String; 4]> = texts(9).collect();
    back.truncate(2);
    assert_fully_reported!(back.clone());
    back.shrink_to_fit();
    assert_fully_reported!(back);
}

#[test]
fn tiny_vectors() {
    assert_fully_reported!(texts(3).collect::<TinyVec<[String; 4]>>());
    assert_fully_reported!(texts(5).collect::<TinyVec<[String; 4]>>());
    assert_fully_reported!(texts(4).collect::<tinyvec::ArrayVec<[String; 4]>>());
}

#[test]
fn vectors_within_a_value() {
    assert_fully_reported!(texts(3).collect::<ArrayVec<_, 4>>());
    owns_blocks(&ArrayString::<16>::from("a text").unwrap(), 0);
    assert_fully_reported!((
        Either::<String, Vec<String>>::Left(text(9)),
        Either::<String, Vec<String>>::Right(vec![text(99)]),
    ));
}

#[test]
fn thin_vectors() {
    assert_fully_reported!(ThinVec::<String>::new());
    assert_fully_reported!(ThinVec::<String>::with_capacity(9));
    assert_fully_reported!(texts(30).collect::<ThinVec<_>>());
    assert_fully_reported!((0..9).map(Aligned).collect::<ThinVec<_>>());
    assert_fully_reported!(std::iter::repeat_n((), 9).collect::<ThinVec<_>>());
}

#[test]
fn slabs() {
    assert_fully_reported!(slab::Slab::<String>::new());
    assert_fully_reported!(slab::Slab::<u8>::with_capacity(100));
    let mut slab = slab::Slab::new();
    let keys: Vec<_> = texts(50).map(|text| slab.insert(text)).collect();
    keys.iter().step_by(3).for_each(|key| drop(slab.remove(*key)));
    assert_fully_reported!(slab.clone());
    slab.clear();
    assert_fully_reported!(slab);
}

#[test]
fn slot_maps() {
    use slotmap::{DenseSlotMap, SecondaryMap, SlotMap, SparseSecondaryMap};
    let mut map: SlotMap<slotmap::DefaultKey, String> = SlotMap::new();
    let keys: Vec<_> = texts(50).map(|text| map.insert(text)).collect();
    let secondary: SecondaryMap<_, _> = keys.iter().map(|key| (*key, text(40))).collect();
    keys.iter().step_by(3).for_each(|key| drop(map.remove(*key)));
    assert_fully_reported!((map, secondary));
    let mut dense: DenseSlotMap<slotmap::DefaultKey, String> = DenseSlotMap::with_capacity(9);
    texts(50).for_each(|text| _ = dense.insert(text));
    assert_fully_reported!(dense);
    let sparse: SparseSecondaryMap<_, _> = keys.iter().map(|key| (*key, text(40))).collect();
    assert_fully_reported!(sparse);
    assert_fully_reported!(SparseSecondaryMap::<slotmap::DefaultKey, u8>::with_capacity(20));
}

#[test]
#[expect(deprecated, reason = "programs still have them")]
fn hop_slot_maps() {
    use slotmap::HopSlotMap;
    let mut hop: HopSlotMap<slotmap::DefaultKey, String> = HopSlotMap::with_capacity(20);
    let keys: Vec<_> = texts(50).map(|text| hop.insert(text)).collect();
    keys.iter().step_by(3).for_each(|key| drop(hop.remove(*key)));
    assert_fully_reported!(hop);
    assert_fully_reported!(HopSlotMap::<slotmap::DefaultKey, u8>::with_key());
}

#[test]
fn queues_of_what_owns_nothing() {
    let queue = ArrayQueue::new(100);
    queue.push(1_u64).unwrap();
    assert_fully_reported!(queue);
    assert_fully_reported!(ArrayQueue::<Aligned>::new(3));
    assert_fully_reported!(SegQueue::<u64>::new());
    for number in [1, 31, 32, 60] {
        let queue = SegQueue::new();
        (0..number).for_each(|index| queue.push(index));
        assert_fully_reported!(queue);
    }
}

/// Queued elements cannot be reached.
#[test]
fn queues_are_lower_bounds() {
    let queue = ArrayQueue::new(2);
    queue.push(text(100)).unwrap();
    owns_blocks(&queue, 1);
    let queue = SegQueue::new();
    (0..200).for_each(|index| queue.push(index));
    owns_blocks(&queue, 2);
}

#[test]
fn padded_values() {
    assert_fully_reported!(crossbeam_utils::CachePadded::new(text(9)));
    assert_fully_reported!(crossbeam_utils::atomic::AtomicCell::new(1_u8));
}

#[test]
fn bits() {
    use bitvec::prelude::{BitBox, BitVec, Lsb0, Msb0};
    assert_fully_reported!(BitVec::<usize, Lsb0>::new());
    assert_fully_reported!(BitVec::<u8, Msb0>::with_capacity(1001));
    assert_fully_reported!(BitVec::<u32, Lsb0>::repeat(true, 99));
    let whole = BitVec::<u16, Lsb0>::repeat(false, 500);
    // Begins inside an element.
    assert_fully_reported!(whole[5..77].to_bitvec());
    let mut cleared = whole.clone();
    cleared.clear();
    assert_fully_reported!(cleared);
    assert_fully_reported!(BitBox::<u64, Msb0>::from_bitslice(&BitVec::repeat(true, 130)));
    assert_fully_reported!(vec![whole.into_boxed_bitslice(); 20]);
}

#[test]
fn arrays_of_numbers_and_of_texts() {
    use ndarray::{Array1, Array2, Axis, Slice};
    assert_fully_reported!(Array1::<f64>::zeros(1000));
    assert_fully_reported!(Array1::<f64>::zeros(0));
    assert_fully_reported!(Array2::from_shape_fn((5, 7), |(row, column)| text(row * 7 + column)));
    let mut turned = Array2::<u16>::zeros((30, 40)).reversed_axes();
    turned.invert_axis(Axis(0));
    turned.slice_axis_inplace(Axis(1), Slice::from(3..9));
    assert_fully_reported!(turned);
    assert_fully_reported!(Array1::from_vec(vec![(); 9]));
}

#[test]
fn arenas_with_generations() {
    use generational_arena::Arena;
    assert_fully_reported!(Arena::<String>::with_capacity(0));
    assert_fully_reported!(Arena::<Aligned>::with_capacity(7));
    let mut arena = Arena::new();
    let keys: Vec<_> = texts(50).map(|text| arena.insert(text)).collect();
    keys.iter().step_by(3).for_each(|key| drop(arena.remove(*key)));
    assert_fully_reported!((arena, keys));
}

#[test]
fn channels_with_what_owns_nothing() {
    use crossbeam_channel::{bounded, never, unbounded};
    let (sender, receiver) = unbounded::<u64>();
    assert_fully_reported!((sender.clone(), sender, receiver));
    for messages in [1, 31, 60] {
        let (sender, receiver) = unbounded();
        (0..messages).for_each(|message| sender.send(message).unwrap());
        assert_fully_reported!((receiver, sender));
    }
    let (sender, receiver) = bounded(50);
    sender.send(Aligned(1)).unwrap();
    assert_fully_reported!((sender.clone(), receiver, sender));
    let (sender, receiver) = bounded::<u8>(0);
    assert_fully_reported!((receiver, sender));
    assert_fully_reported!(never::<u8>());
    assert_fully_reported!(crossbeam_channel::tick(std::time::Duration::from_secs(1)));
}

#[test]
fn channels_of_tokio_with_what_owns_nothing() {
    use tokio::sync::{broadcast, mpsc, oneshot, watch};
    let (sender, receiver) = mpsc::channel::<u64>(50);
    sender.try_send(1).unwrap();
    assert_fully_reported!((sender.clone(), receiver, sender));
    let (sender, receiver) = oneshot::channel::<u64>();
    assert_fully_reported!((receiver, sender));
    let (sender, receiver) = watch::channel(Aligned(1));
    assert_fully_reported!((receiver.clone(), sender, receiver));
    let (sender, receiver) = broadcast::channel::<u64>(30);
    sender.send(1).unwrap();
    assert_fully_reported!((sender, receiver.resubscribe(), receiver));
}
