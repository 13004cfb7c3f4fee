//! Allocates in every way, in the mode that `$DMD` names or under an observer, and saves a dump.
//!
//! `own-frames dump FILE` saves a report and its dump; `own-frames observe` prints the innermost
//! function of observed allocations.
#![expect(clippy::print_stdout, reason = "what a test reads")]

use std::error::Error;

dmd::global_allocator!();

#[inline(never)]
fn allocates() -> (Box<[u64; 64]>, Vec<u8>, Vec<u32>) {
    let boxed = Box::new([1; 64]);
    let zeroed = vec![0_u8; 4096];
    let mut grown = Vec::with_capacity(16);
    grown.extend(0..1000);
    (boxed, zeroed, grown)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["dump", file] => {
            let values: Vec<_> = (0..100).map(|_| allocates()).collect();
            memreport::snapshot().save(file)?;
            drop(values);
        }
        ["observe"] => {
            let _observer = dmd::observe::Observer::start()?;
            let (boxed, zeroed, grown) = allocates();
            let sites = [
                dmd::allocation_site(&*boxed)?,
                dmd::allocation_site(&zeroed[0])?,
                dmd::allocation_site(&grown[0])?,
            ];
            for site in sites {
                println!("{}", site.stack().functions().first().map_or("", String::as_str));
            }
        }
        _ => return Err("own-frames dump FILE | observe".into()),
    }
    Ok(())
}
