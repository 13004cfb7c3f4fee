//! Compiles the libraries.

fn main() {
    let include = "../../memreport/include";
    for source in ["c/images.c", "c/names.cpp", &format!("{include}/memreport.h")] {
        println!("cargo::rerun-if-changed={source}");
    }
    // Compilers leave out blocks that nothing uses.
    cc::Build::new().file("c/images.c").include(include).flag("-fno-builtin").compile("images");
    cc::Build::new().cpp(true).std("c++17").file("c/names.cpp").include(include).compile("names");
}
