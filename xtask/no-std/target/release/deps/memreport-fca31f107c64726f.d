/work/wt/mem/xtask/no-std/target/release/deps/memreport-fca31f107c64726f.d: /work/wt/mem/memreport/src/lib.rs /work/wt/mem/memreport/src/field.rs /work/wt/mem/memreport/src/tracker.rs /work/wt/mem/memreport/src/tracker/claim.rs /work/wt/mem/memreport/src/tracker/recorder.rs /work/wt/mem/memreport/src/allocator.rs /work/wt/mem/memreport/src/allocator/words.rs /work/wt/mem/memreport/src/allocator/size_source.rs /work/wt/mem/memreport/src/measure.rs /work/wt/mem/memreport/src/measure/measured.rs /work/wt/mem/memreport/src/measure/ops.rs /work/wt/mem/memreport/src/measure/ops/collection.rs /work/wt/mem/memreport/src/measure/ops/find.rs /work/wt/mem/memreport/src/measure/ops/prefetch.rs /work/wt/mem/memreport/src/measure/ops/queue.rs /work/wt/mem/memreport/src/measure/ops/share.rs /work/wt/mem/memreport/src/measure/ops/sums.rs /work/wt/mem/memreport/src/measure/size_of.rs /work/wt/mem/memreport/src/measure/sizes.rs /work/wt/mem/memreport/src/measure/guard.rs /work/wt/mem/memreport/src/impls.rs /work/wt/mem/memreport/src/impls/plain.rs /work/wt/mem/memreport/src/impls/composed.rs /work/wt/mem/memreport/src/impls/text.rs /work/wt/mem/memreport/src/impls/sequence.rs /work/wt/mem/memreport/src/impls/boxed.rs /work/wt/mem/memreport/src/impls/cells.rs /work/wt/mem/memreport/src/impls/lazy.rs /work/wt/mem/memreport/src/impls/errors.rs /work/wt/mem/memreport/src/impls/shared.rs /work/wt/mem/memreport/src/impls/deque.rs /work/wt/mem/memreport/src/impls/list.rs /work/wt/mem/memreport/src/impls/btree.rs /work/wt/mem/memreport/src/impls/iterators.rs /work/wt/mem/memreport/src/impls/features.rs

/work/wt/mem/xtask/no-std/target/release/deps/libmemreport-fca31f107c64726f.rlib: /work/wt/mem/memreport/src/lib.rs /work/wt/mem/memreport/src/field.rs /work/wt/mem/memreport/src/tracker.rs /work/wt/mem/memreport/src/tracker/claim.rs /work/wt/mem/memreport/src/tracker/recorder.rs /work/wt/mem/memreport/src/allocator.rs /work/wt/mem/memreport/src/allocator/words.rs /work/wt/mem/memreport/src/allocator/size_source.rs /work/wt/mem/memreport/src/measure.rs /work/wt/mem/memreport/src/measure/measured.rs /work/wt/mem/memreport/src/measure/ops.rs /work/wt/mem/memreport/src/measure/ops/collection.rs /work/wt/mem/memreport/src/measure/ops/find.rs /work/wt/mem/memreport/src/measure/ops/prefetch.rs /work/wt/mem/memreport/src/measure/ops/queue.rs /work/wt/mem/memreport/src/measure/ops/share.rs /work/wt/mem/memreport/src/measure/ops/sums.rs /work/wt/mem/memreport/src/measure/size_of.rs /work/wt/mem/memreport/src/measure/sizes.rs /work/wt/mem/memreport/src/measure/guard.rs /work/wt/mem/memreport/src/impls.rs /work/wt/mem/memreport/src/impls/plain.rs /work/wt/mem/memreport/src/impls/composed.rs /work/wt/mem/memreport/src/impls/text.rs /work/wt/mem/memreport/src/impls/sequence.rs /work/wt/mem/memreport/src/impls/boxed.rs /work/wt/mem/memreport/src/impls/cells.rs /work/wt/mem/memreport/src/impls/lazy.rs /work/wt/mem/memreport/src/impls/errors.rs /work/wt/mem/memreport/src/impls/shared.rs /work/wt/mem/memreport/src/impls/deque.rs /work/wt/mem/memreport/src/impls/list.rs /work/wt/mem/memreport/src/impls/btree.rs /work/wt/mem/memreport/src/impls/iterators.rs /work/wt/mem/memreport/src/impls/features.rs

/work/wt/mem/xtask/no-std/target/release/deps/libmemreport-fca31f107c64726f.rmeta: /work/wt/mem/memreport/src/lib.rs /work/wt/mem/memreport/src/field.rs /work/wt/mem/memreport/src/tracker.rs /work/wt/mem/memreport/src/tracker/claim.rs /work/wt/mem/memreport/src/tracker/recorder.rs /work/wt/mem/memreport/src/allocator.rs /work/wt/mem/memreport/src/allocator/words.rs /work/wt/mem/memreport/src/allocator/size_source.rs /work/wt/mem/memreport/src/measure.rs /work/wt/mem/memreport/src/measure/measured.rs /work/wt/mem/memreport/src/measure/ops.rs /work/wt/mem/memreport/src/measure/ops/collection.rs /work/wt/mem/memreport/src/measure/ops/find.rs /work/wt/mem/memreport/src/measure/ops/prefetch.rs /work/wt/mem/memreport/src/measure/ops/queue.rs /work/wt/mem/memreport/src/measure/ops/share.rs /work/wt/mem/memreport/src/measure/ops/sums.rs /work/wt/mem/memreport/src/measure/size_of.rs /work/wt/mem/memreport/src/measure/sizes.rs /work/wt/mem/memreport/src/measure/guard.rs /work/wt/mem/memreport/src/impls.rs /work/wt/mem/memreport/src/impls/plain.rs /work/wt/mem/memreport/src/impls/composed.rs /work/wt/mem/memreport/src/impls/text.rs /work/wt/mem/memreport/src/impls/sequence.rs /work/wt/mem/memreport/src/impls/boxed.rs /work/wt/mem/memreport/src/impls/cells.rs /work/wt/mem/memreport/src/impls/lazy.rs /work/wt/mem/memreport/src/impls/errors.rs /work/wt/mem/memreport/src/impls/shared.rs /work/wt/mem/memreport/src/impls/deque.rs /work/wt/mem/memreport/src/impls/list.rs /work/wt/mem/memreport/src/impls/btree.rs /work/wt/mem/memreport/src/impls/iterators.rs /work/wt/mem/memreport/src/impls/features.rs

/work/wt/mem/memreport/src/lib.rs:
/work/wt/mem/memreport/src/field.rs:
/work/wt/mem/memreport/src/tracker.rs:
/work/wt/mem/memreport/src/tracker/claim.rs:
/work/wt/mem/memreport/src/tracker/recorder.rs:
/work/wt/mem/memreport/src/allocator.rs:
/work/wt/mem/memreport/src/allocator/words.rs:
/work/wt/mem/memreport/src/allocator/size_source.rs:
/work/wt/mem/memreport/src/measure.rs:
/work/wt/mem/memreport/src/measure/measured.rs:
/work/wt/mem/memreport/src/measure/ops.rs:
/work/wt/mem/memreport/src/measure/ops/collection.rs:
/work/wt/mem/memreport/src/measure/ops/find.rs:
/work/wt/mem/memreport/src/measure/ops/prefetch.rs:
/work/wt/mem/memreport/src/measure/ops/queue.rs:
/work/wt/mem/memreport/src/measure/ops/share.rs:
/work/wt/mem/memreport/src/measure/ops/sums.rs:
/work/wt/mem/memreport/src/measure/size_of.rs:
/work/wt/mem/memreport/src/measure/sizes.rs:
/work/wt/mem/memreport/src/measure/guard.rs:
/work/wt/mem/memreport/src/impls.rs:
/work/wt/mem/memreport/src/impls/plain.rs:
/work/wt/mem/memreport/src/impls/composed.rs:
/work/wt/mem/memreport/src/impls/text.rs:
/work/wt/mem/memreport/src/impls/sequence.rs:
/work/wt/mem/memreport/src/impls/boxed.rs:
/work/wt/mem/memreport/src/impls/cells.rs:
/work/wt/mem/memreport/src/impls/lazy.rs:
/work/wt/mem/memreport/src/impls/errors.rs:
/work/wt/mem/memreport/src/impls/shared.rs:
/work/wt/mem/memreport/src/impls/deque.rs:
/work/wt/mem/memreport/src/impls/list.rs:
/work/wt/mem/memreport/src/impls/btree.rs:
/work/wt/mem/memreport/src/impls/iterators.rs:
/work/wt/mem/memreport/src/impls/features.rs:
