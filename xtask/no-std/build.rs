//! Links the program with the C library alone, which provides the start and the memory.

fn main() {
    println!("cargo::rustc-link-arg-bins=-lc");
}
