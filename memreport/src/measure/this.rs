//! Defines Mozilla's two functions: the size of a value with, and without, the block it lives in.
#![expect(unsafe_code, reason = "passes on the contract of a value behind a raw pointer")]

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::rc::Rc;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::alloc::Layout;
use core::pin::Pin;

use super::ops::Ops;
use super::size_of::MallocSizeOf;

/// A type whose values report the heap that they own, without their own storage.
///
/// Every type with [`MallocSizeOf`] has this trait. `#[derive(SizeOfExcludingThis)]` therefore
/// writes the same impl as `#[derive(MallocSizeOf)]`.
///
/// ```
/// use memreport::{SizeOfExcludingThis, Traversal};
///
/// #[derive(SizeOfExcludingThis)]
/// struct Page { text: String }
///
/// let page = Page { text: "a".repeat(100) };
/// assert!(Traversal::new().run(|ops| page.size_of_excluding_this(ops)) >= 100);
/// assert_eq!(memreport::measure(&page).blocks, 1); // deriving one is enough
/// ```
///
/// `this` is the value in front of the dot. A box's own storage is its pointer, so
/// `boxed.size_of_excluding_this(ops)` contains the block behind it.
/// `(*boxed).size_of_excluding_this(ops)` does not.
pub trait SizeOfExcludingThis: MallocSizeOf {
    /// Returns the heap bytes that this value adds to `ops`.
    fn size_of_excluding_this(&self, ops: &Ops<'_>) -> usize {
        let before = ops.bytes();
        ops.measure_borrowed(self, |value, ops| value.add_size_of_excluding_this(ops));
        ops.bytes() - before
    }
}

impl<T: ?Sized + MallocSizeOf> SizeOfExcludingThis for T {}

/// A type whose values are measured together with the heap block that they live in.
///
/// `#[derive(SizeOfIncludingThis)]` writes the impl of [`MallocSizeOf`], and adds this trait. Every
/// pointer that [`OwnsBlock`] then has the method `size_of_including_this`. It is safe, because the
/// value behind such a pointer sits at a known place of a block of its own. A value elsewhere, such
/// as a local variable or a field, does not have the method: it may lie within another block.
///
/// ```
/// use std::sync::Arc;
///
/// use memreport::{SizeOfExcludingThis, SizeOfIncludingThis, Traversal};
///
/// #[derive(SizeOfIncludingThis)]
/// struct Page { text: String, number: u64 }
///
/// let page = Box::new(Page { text: "a".repeat(100), number: 1 });
/// let traversal = Traversal::new();
/// let including = traversal.run(|ops| page.size_of_including_this(ops));
/// let excluding = traversal.run(|ops| (*page).size_of_excluding_this(ops));
/// assert_eq!(including, excluding + size_of::<Page>()); // no allocator is declared: no slop
///
/// // A shared block counts once in a traversal.
/// let shared = Arc::new(Page { text: String::new(), number: 2 });
/// let other = Arc::clone(&shared);
/// assert!(traversal.run(|ops| shared.size_of_including_this(ops)) > 0);
/// assert_eq!(traversal.run(|ops| other.size_of_including_this(ops)), 0);
/// ```
///
/// A value that no pointer owns is refused:
///
/// ```compile_fail,E0277
/// use memreport::{SizeOfIncludingThis, Traversal};
///
/// #[derive(SizeOfIncludingThis)]
/// struct Page { text: String }
///
/// let page = Page { text: String::new() };
/// Traversal::new().run(|ops| page.size_of_including_this(ops));
/// ```
///
/// For a type with an impl of `MallocSizeOf` by hand, add `impl SizeOfIncludingThis for Page {}`.
/// A value behind a raw pointer is measured by [`Ops::add_including_this`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not declared as a type that lives in heap blocks of its own",
    label = "`SizeOfIncludingThis` is not implemented for `{Self}`",
    note = "your own type: add `#[derive(SizeOfIncludingThis)]` in place of `#[derive(MallocSizeOf)]`",
    note = "`size_of_excluding_this` of a `Box`, `Rc` or `Arc` contains its block, for every type"
)]
pub trait SizeOfIncludingThis: MallocSizeOf {
    /// Returns the heap bytes that the value behind this pointer and its block add to `ops`.
    ///
    /// A block with several owners counts for the first one that the traversal visits. A value
    /// without a size has no block.
    fn size_of_including_this(&self, ops: &Ops<'_>) -> usize
    where
        Self: OwnsBlock + Sized,
    {
        self.size_of_excluding_this(ops)
    }
}

/// A pointer that owns, alone or with others, a heap block that holds its value.
///
/// `Box`, `Rc`, `Arc`, each also pinned, and with their features the pointers of `triomphe` and
/// `archery`. For a pointer of your own, [`MallocSizeOf`] adds the block, and both traits are
/// implemented without methods.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no pointer to a heap block of its own",
    label = "this value may lie within another block, or on the stack",
    note = "call `size_of_including_this` on the `Box`, `Rc` or `Arc` that owns the value",
    note = "for a value that is embedded in another one, call `size_of_excluding_this`"
)]
pub trait OwnsBlock: SizeOfIncludingThis {}

/// Implements both traits for pointers.
macro_rules! own_blocks {
    ($($pointer:ty),*) => {$(
        impl<T: ?Sized + SizeOfIncludingThis> SizeOfIncludingThis for $pointer {}
        impl<T: ?Sized + SizeOfIncludingThis> OwnsBlock for $pointer {}
    )*};
}

own_blocks!(Box<T>, Rc<T>, Arc<T>, Pin<Box<T>>, Pin<Rc<T>>, Pin<Arc<T>>);
#[cfg(feature = "triomphe")]
own_blocks!(triomphe::Arc<T>);
#[cfg(feature = "archery")]
impl<T: SizeOfIncludingThis, P: archery::SharedPointerKind> SizeOfIncludingThis
    for archery::SharedPointer<T, P>
{
}
#[cfg(feature = "archery")]
impl<T: SizeOfIncludingThis, P: archery::SharedPointerKind> OwnsBlock
    for archery::SharedPointer<T, P>
{
}

impl SizeOfIncludingThis for str {}
impl SizeOfIncludingThis for String {}
impl<T: MallocSizeOf> SizeOfIncludingThis for [T] {}
impl<T: MallocSizeOf> SizeOfIncludingThis for Vec<T> {}
impl<T: MallocSizeOf> SizeOfIncludingThis for VecDeque<T> {}
impl<T: MallocSizeOf> SizeOfIncludingThis for BTreeSet<T> {}
impl<K: MallocSizeOf, V: MallocSizeOf> SizeOfIncludingThis for BTreeMap<K, V> {}
#[cfg(feature = "std")]
impl<T: MallocSizeOf, S> SizeOfIncludingThis for std::collections::HashSet<T, S> {}
#[cfg(feature = "std")]
impl<K: MallocSizeOf, V: MallocSizeOf, S> SizeOfIncludingThis
    for std::collections::HashMap<K, V, S>
{
}

impl<'a> Ops<'a> {
    /// Adds the heap that a value behind a raw pointer owns, and the block that it lives in.
    ///
    /// A value behind a `Box`, `Rc` or `Arc` needs no `unsafe`: [`add`](Self::add) the pointer, or
    /// call its [`size_of_including_this`](SizeOfIncludingThis::size_of_including_this).
    ///
    /// # Safety
    ///
    /// `value` is the start of a live block of the global allocator, allocated with
    /// `Layout::for_value(value)`.
    pub unsafe fn add_including_this<T: ?Sized + MallocSizeOf>(&self, value: &'a T) {
        // SAFETY: the caller's contract is the one of `block`.
        unsafe { self.block(core::ptr::from_ref(value), Layout::for_value(value)) };
        self.add(value);
    }
}
