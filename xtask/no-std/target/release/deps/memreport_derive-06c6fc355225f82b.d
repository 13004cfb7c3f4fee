/work/wt/mem/xtask/no-std/target/release/deps/memreport_derive-06c6fc355225f82b.d: /work/wt/mem/memreport-derive/src/lib.rs /work/wt/mem/memreport-derive/src/errors.rs /work/wt/mem/memreport-derive/src/attr.rs /work/wt/mem/memreport-derive/src/ast.rs /work/wt/mem/memreport-derive/src/bounds.rs /work/wt/mem/memreport-derive/src/expand.rs /work/wt/mem/memreport-derive/src/sizes.rs

/work/wt/mem/xtask/no-std/target/release/deps/libmemreport_derive-06c6fc355225f82b.so: /work/wt/mem/memreport-derive/src/lib.rs /work/wt/mem/memreport-derive/src/errors.rs /work/wt/mem/memreport-derive/src/attr.rs /work/wt/mem/memreport-derive/src/ast.rs /work/wt/mem/memreport-derive/src/bounds.rs /work/wt/mem/memreport-derive/src/expand.rs /work/wt/mem/memreport-derive/src/sizes.rs

/work/wt/mem/memreport-derive/src/lib.rs:
/work/wt/mem/memreport-derive/src/errors.rs:
/work/wt/mem/memreport-derive/src/attr.rs:
/work/wt/mem/memreport-derive/src/ast.rs:
/work/wt/mem/memreport-derive/src/bounds.rs:
/work/wt/mem/memreport-derive/src/expand.rs:
/work/wt/mem/memreport-derive/src/sizes.rs:
