//! Measures pointers of `arc-swap` as the `Arc` that they hold at this moment. *Exact.*

use arc_swap::strategy::Strategy;
use arc_swap::{ArcSwapAny, RefCnt};

use crate::{MallocSizeOf, Ops};

/// A value that another thread stores meanwhile is not measured.
impl<T: RefCnt + MallocSizeOf, S: Strategy<T>> MallocSizeOf for ArcSwapAny<T, S> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        if ops.is_deep() {
            ops.measure_owned(self.load_full());
        } else {
            ops.measure_borrowed(&*self.load(), T::add_size_of_excluding_this);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::sync::Arc;

    use arc_swap::ArcSwapOption;

    use super::*;

    /// A version of a value, with the one before it.
    struct Version {
        before: ArcSwapOption<Version>,
    }

    impl MallocSizeOf for Version {
        fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
            ops.add(&self.before);
        }
    }

    impl Drop for Version {
        fn drop(&mut self) {
            let mut before = self.before.swap(None);
            while let Some(version) = before {
                before = version.before.swap(None);
            }
        }
    }

    #[test]
    fn a_long_chain_of_versions_fits_the_stack() {
        let mut newest = Version { before: ArcSwapOption::empty() };
        for _ in 0..20_000 {
            newest = Version { before: ArcSwapOption::new(Some(Arc::new(newest))) };
        }
        assert_eq!(crate::measure(&newest).blocks, 20_000);
    }
}
