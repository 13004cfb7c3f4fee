//! Programs that no library can be preloaded into: refused before they start, with the reason.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::dumps::about_memory;
use crate::subject::{Scratch, compile};

#[track_caller]
fn assert_refused(program: &Path, reason: &str) {
    for command in ["run", "record"] {
        let program = program.to_str().expect("text");
        let error = about_memory(&[command, "--", program]).expect_err("it must not run");
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn a_static_program() {
    let scratch = Scratch::new("static");
    let Some(program) = compile(&scratch, "known.c", "known", &["-static"]) else { return };
    assert_refused(&program, "is statically linked, so that its malloc cannot be replaced");
}

#[test]
fn a_set_user_id_program() {
    let scratch = Scratch::new("privileged");
    let program = scratch.join("program");
    std::fs::copy("/bin/true", &program).expect("a program");
    if std::os::unix::fs::chown(&program, Some(65534), None).is_err() {
        return println!("not run: needs root, to give a file to another user");
    }
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o4755)).expect("ours");
    assert_refused(&program, "runs with other privileges than yours");
}

#[test]
fn a_program_for_another_processor_or_c_library() {
    let scratch = Scratch::new("other");
    let own = std::fs::read("/bin/true").expect("a program");
    let (program, changed) = (scratch.join("program"), |at: usize, byte: u8| {
        let mut bytes = own.clone();
        bytes[at] = byte;
        bytes
    });
    // The machine in the header: 243 is RISC-V.
    std::fs::write(&program, changed(18, 243)).expect("a file");
    assert_refused(&program, "is for another processor than about-memory");
    let Some(linker) = own.windows(9).position(|part| part == b"/ld-linux") else {
        return println!("not run: /bin/true has another dynamic linker");
    };
    let mut bytes = own.clone();
    bytes[linker + 1..linker + 8].copy_from_slice(b"ld-musl");
    std::fs::write(&program, bytes).expect("a file");
    assert_refused(&program, "its C library is musl");
}

#[test]
fn a_file_that_is_no_program() {
    let scratch = Scratch::new("text");
    let program = scratch.join("text");
    std::fs::write(&program, "text").expect("a file");
    assert_refused(&program, "not a program");
}
