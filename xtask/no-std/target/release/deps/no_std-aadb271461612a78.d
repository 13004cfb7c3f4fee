/work/wt/mem/xtask/no-std/target/release/deps/no_std-aadb271461612a78.d: src/main.rs

/work/wt/mem/xtask/no-std/target/release/deps/no_std-aadb271461612a78: src/main.rs

src/main.rs:
