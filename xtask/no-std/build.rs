//! The program is linked with the C library alone, for the start and for memory.

fn main() {
    println!("cargo::rustc-link-arg-bins=-lc");
}
