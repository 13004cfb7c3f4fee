//! Functions that a linker has merged: a file whose symbol table has several at one address.

use super::{dump, scratch};
use crate::analysis::BlockType;
use crate::symbols::Symboliser;

const ADDRESS: u64 = 0x1000;

/// Returns an ELF file with a symbol table of these functions, all at [`ADDRESS`].
fn file_of(functions: &[&str]) -> Vec<u8> {
    let mut names = vec![0];
    let mut symbols = vec![0; 24];
    for function in functions {
        symbols.extend(u32::try_from(names.len()).unwrap().to_le_bytes());
        // A global function of the first section, 32 bytes long.
        symbols.extend([0x12, 0, 1, 0]);
        symbols.extend(ADDRESS.to_le_bytes());
        symbols.extend(32_u64.to_le_bytes());
        names.extend(function.bytes());
        names.push(0);
    }
    let (symbols_at, names_at) = (64, 64 + symbols.len());
    let sections_at = names_at + names.len();
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    // A shared object for x86-64 of version 1, without an entry and without segments.
    file.extend([3, 0, 62, 0, 1, 0, 0, 0]);
    file.extend([0; 16]);
    file.extend(u64::try_from(sections_at).unwrap().to_le_bytes());
    file.extend([0, 0, 0, 0, 64, 0, 0, 0, 0, 0, 64, 0, 4, 0, 3, 0]);
    file.extend(symbols);
    file.extend(names);
    let begin = |at: usize| u64::try_from(at).unwrap();
    // Type, flags, address, place, size, link, entry size: code without bytes, symbols, names.
    let sections = [
        (0, 0, 0, 0, 0, 0, 0),
        (8, 6, ADDRESS, 0, 32, 0, 0),
        (2, 0, 0, begin(symbols_at), begin(names_at - symbols_at), 3, 24),
        (3, 0, 0, begin(names_at), begin(sections_at - names_at), 0, 0),
    ];
    for (kind, flags, address, at, size, link, entry) in sections {
        let (kind, link): (u32, u32) = (kind, link);
        file.extend([[0; 4], kind.to_le_bytes()].concat());
        file.extend([flags, address, at, size].map(u64::to_le_bytes).concat());
        file.extend([link.to_le_bytes(), 1_u32.to_le_bytes()].concat());
        file.extend([1, entry].map(u64::to_le_bytes).concat());
    }
    file
}

/// Returns the text of the frame and the type of the block, for code of these functions.
fn shown(functions: &[&str]) -> (String, String) {
    let folder = scratch(&format!("merged-{}", functions.len()));
    let path = folder.join("program");
    std::fs::write(&path, file_of(functions)).unwrap();
    let mut dump = dump(path.to_str().unwrap(), None, &[0x1004]);
    let report = Symboliser::default().symbolicate(&mut dump);
    assert_eq!(report.found, 1, "{:?}", report.notes);
    std::fs::remove_dir_all(folder).unwrap();
    let trace = dump.trace(dump.blocks.at(0).kind.alloc.unwrap());
    let text = dump.frames[trace[0].index()].text.to_string();
    (text, BlockType::of_trace(&dump, trace).describe())
}

#[test]
fn an_address_of_several_functions_names_all_or_what_they_have_in_common() {
    let made = "_ZN4shop5order4make17h0123456789abcdefE";
    let other_instance = "_ZN4shop5order4make17h1123456789abcdefE";
    let other = "_ZN4till7receipt3new17h2123456789abcdefE";
    let table = [
        (vec![made], "shop::order::make"),
        (vec![other_instance, made], "shop::order::make"),
        (vec![other, made, other_instance], "one of shop::order::make, till::receipt::new"),
    ];
    for (functions, expected) in table {
        let (text, described) = shown(&functions);
        assert_eq!(text, format!("#00: {expected}"));
        assert_eq!(described, format!("type unknown, allocated in {expected}"));
    }
}
