//! Finds the files of a module: its executable or library, its separate debug file, its package of
//! split debug information.

use std::fmt;
use std::path::{Path, PathBuf};

use super::elf::Elf;
use super::file;
use crate::symbols::Options;

/// The directory where distributions install debug files.
const SYSTEM: &str = "/usr/lib/debug";

/// The contents of a module's files.
#[derive(Debug)]
pub(crate) struct Files {
    /// The path of the module in the process.
    pub(crate) path: PathBuf,
    pub(crate) main: Vec<u8>,
    /// The separate debug file, if there is one.
    pub(crate) debug: Option<Vec<u8>>,
    /// The `.dwp` file, if there is one.
    pub(crate) package: Option<Vec<u8>>,
}

/// The error for a module without a usable file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModuleError {
    /// No file could be read.
    Unreadable(String),
    /// The file is not an ELF file, or it is damaged.
    NotElf(String),
    /// The file has another build id than the module that ran.
    OtherBuild {
        /// The build id of the file.
        found: String,
        /// The build id in the dump.
        wanted: String,
    },
}

impl fmt::Display for ModuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(error) => {
                write!(f, "cannot be read ({error}): name a directory that has it with --symbols")
            }
            Self::NotElf(error) => write!(f, "is not a usable ELF file ({error})"),
            Self::OtherBuild { found, wanted } => write!(
                f,
                "is not the file that ran: its build id is {found}, the dump's {wanted}; \
                 build that version again or name a directory that has it with --symbols"
            ),
        }
    }
}

impl Options {
    /// Returns whether a directory to search, or the system's, has the debug file of a build.
    #[must_use]
    pub fn has_debug_file(&self, build_id: &str) -> bool {
        debug_file_of_build(build_id, self).is_some()
    }
}

impl Files {
    /// Finds the files of the module that ran from `path`.
    pub(crate) fn find(
        path: &Path,
        build_id: Option<&str>,
        options: &Options,
    ) -> Result<Self, ModuleError> {
        let main = main_file(path, build_id, options)?;
        let elf = Elf::parse(&main).map_err(ModuleError::NotElf)?;
        let own = elf.build_id().or_else(|| build_id.map(str::to_owned));
        let mut debug = None;
        if !elf.has_debug_info() {
            debug = debug_file(path, &elf, own.as_deref(), options);
        }
        let package = package(path, options);
        Ok(Self { path: path.to_owned(), main, debug, package })
    }
}

impl Files {
    /// Returns whether they contain debug information, which has lines and inlined functions.
    pub(crate) fn has_lines(&self) -> Result<bool, String> {
        Ok(Elf::parse(self.debug.as_ref().unwrap_or(&self.main))?.has_debug_info())
    }
}

/// Returns the first file that is the module: in the given directories, at its own path, or among
/// the debug files.
fn main_file(
    path: &Path,
    build_id: Option<&str>,
    options: &Options,
) -> Result<Vec<u8>, ModuleError> {
    let mut places: Vec<PathBuf> = Vec::new();
    for directory in &options.search {
        places.extend(build_id.and_then(|id| in_build_ids(directory, id, "")));
        places
            .extend(build_id.into_iter().flat_map(|id| in_debuginfod(directory, id, "executable")));
        places.extend(path.file_name().map(|name| directory.join(name)));
    }
    places.push(path.to_owned());
    for directory in options.search.iter().map(PathBuf::as_path).chain([Path::new(SYSTEM)]) {
        places.extend(build_id.and_then(|id| in_build_ids(directory, id, ".debug")));
        places
            .extend(build_id.into_iter().flat_map(|id| in_debuginfod(directory, id, "debuginfo")));
    }
    let mut refusal = None;
    for place in places {
        match accept(&place, build_id) {
            Ok(bytes) => return Ok(bytes),
            // The most precise reason wins: a file of another build over a missing file.
            Err(ModuleError::Unreadable(_)) if refusal.is_some() && place != path => {}
            Err(reason @ ModuleError::Unreadable(_)) => {
                if !matches!(refusal, Some(ModuleError::OtherBuild { .. })) {
                    refusal = Some(reason);
                }
            }
            Err(reason) => refusal = Some(reason),
        }
    }
    Err(refusal.unwrap_or_else(|| ModuleError::Unreadable("no path".to_owned())))
}

/// Reads a file and checks its build id.
fn accept(place: &Path, build_id: Option<&str>) -> Result<Vec<u8>, ModuleError> {
    let bytes = file::read(place).map_err(|error| ModuleError::Unreadable(error.to_string()))?;
    let found = Elf::parse(&bytes).map_err(ModuleError::NotElf)?.build_id();
    match (build_id, found) {
        (Some(wanted), Some(found)) if found != wanted.to_ascii_lowercase() => {
            Err(ModuleError::OtherBuild { found, wanted: wanted.to_owned() })
        }
        _ => Ok(bytes),
    }
}

/// Returns `DIR/.build-id/ab/cdef.debug`.
fn in_build_ids(directory: &Path, build_id: &str, extension: &str) -> Option<PathBuf> {
    let (first, rest) = build_id.split_at_checked(2)?;
    Some(directory.join(".build-id").join(first).join(format!("{rest}{extension}")))
}

/// Returns the places of a build's file in a store laid out as debuginfod serves it,
/// `DIR/buildid/ID/debuginfo`, or as its clients cache it, `DIR/ID/debuginfo`.
fn in_debuginfod(directory: &Path, build_id: &str, name: &str) -> Vec<PathBuf> {
    // Nothing but an id: a dump must not lead out of the directory.
    if build_id.is_empty() || !build_id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Vec::new();
    }
    let id = build_id.to_ascii_lowercase();
    ["buildid", ""].map(|folder| directory.join(folder).join(&id).join(name)).into()
}

/// Finds the separate debug file: by build id, then by the name in the module (`.gnu_debuglink`).
fn debug_file(
    path: &Path,
    elf: &Elf<'_>,
    build_id: Option<&str>,
    options: &Options,
) -> Option<Vec<u8>> {
    let by_id = build_id.and_then(|id| debug_file_of_build(id, options));
    by_id.or_else(|| {
        let (name, crc) = elf.debug_link()?;
        let here = path.parent()?;
        let mut places = vec![here.join(&name), here.join(".debug").join(&name)];
        places.extend(
            here.strip_prefix("/").ok().map(|here| Path::new(SYSTEM).join(here).join(&name)),
        );
        places.extend(options.search.iter().map(|directory| directory.join(&name)));
        places.into_iter().filter_map(|place| with_debug_info(&place, build_id)).find(|bytes| {
            // An equal build id is stronger evidence than the checksum of the file.
            Elf::parse(bytes).is_ok_and(|elf| elf.build_id().is_some()) || crc32(bytes) == crc
        })
    })
}

/// Finds the debug file of a build by its id alone.
fn debug_file_of_build(build_id: &str, options: &Options) -> Option<Vec<u8>> {
    let directories = options.search.iter().map(PathBuf::as_path).chain([Path::new(SYSTEM)]);
    let mut places = directories.flat_map(|directory| {
        let served = in_debuginfod(directory, build_id, "debuginfo");
        in_build_ids(directory, build_id, ".debug").into_iter().chain(served)
    });
    places.find_map(|place| with_debug_info(&place, Some(build_id)))
}

fn with_debug_info(place: &Path, build_id: Option<&str>) -> Option<Vec<u8>> {
    let bytes = accept(place, build_id).ok()?;
    Elf::parse(&bytes).ok()?.has_debug_info().then_some(bytes)
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

/// Finds `program.dwp`, beside the module or in a given directory.
fn package(path: &Path, options: &Options) -> Option<Vec<u8>> {
    let mut name = path.file_name()?.to_owned();
    name.push(".dwp");
    let beside = [path.with_file_name(&name), path.with_extension("dwp")];
    let given = options.search.iter().map(|directory| directory.join(&name));
    given.chain(beside).find_map(|place| file::read(&place).ok())
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_package_is_in_a_given_directory_or_beside_the_program() {
        let folder = std::env::temp_dir().join(format!("dmd-package-{}", std::process::id()));
        let given = folder.join("given");
        fs::create_dir_all(&given).unwrap();
        let program = folder.join("server.bin");
        let options = Options { search: vec![given.clone()], ..Options::default() };
        let found = || package(&program, &options).map(|bytes| String::from_utf8(bytes).unwrap());
        assert_eq!(found(), None);
        for place in
            [folder.join("server.dwp"), folder.join("server.bin.dwp"), given.join("server.bin.dwp")]
        {
            let content = place.display().to_string();
            fs::write(&place, &content).unwrap();
            assert_eq!(found(), Some(content), "the last one comes first");
        }
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_debug_file_is_found_by_the_build_id_and_no_other_is_taken() {
        let program = std::env::current_exe().unwrap();
        let bytes = fs::read(&program).unwrap();
        let elf = Elf::parse(&bytes).unwrap();
        // Some linkers give none unless they are asked.
        let Some(id) = elf.build_id() else { return };
        let folder = std::env::temp_dir().join(format!("dmd-locate-{}", std::process::id()));
        let options = Options { search: vec![folder.clone()], ..Options::default() };
        let place = in_build_ids(&folder, &id, ".debug").unwrap();
        let other = format!("{}{}", &id[..2], "0".repeat(id.len() - 2));
        let wrong_place = in_build_ids(&folder, &other, ".debug").unwrap();
        assert_eq!(place.parent(), Some(&*folder.join(".build-id").join(&id[..2])));
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        let find = |id: Option<&str>| debug_file(Path::new("/no/program"), &elf, id, &options);

        assert!(find(Some(&id)).is_none());
        symlink(&program, &place).unwrap();
        symlink(&program, &wrong_place).unwrap();
        assert!(find(Some(&id)).is_some_and(|found| found == bytes));
        assert!(find(Some(&other)).is_none());
        assert!(find(Some("a")).is_none());
        assert!(find(None).is_none());
        assert!(options.has_debug_file(&id) && !options.has_debug_file(&other));

        // A store as debuginfod lays it out.
        let served = in_debuginfod(&folder.join("store"), &id, "debuginfo");
        assert_eq!(served[0], folder.join("store/buildid").join(&id).join("debuginfo"));
        assert_eq!(in_debuginfod(&folder, "../x", "debuginfo"), Vec::<PathBuf>::new());
        for place in served {
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            symlink(&program, &place).unwrap();
            let options = Options { search: vec![folder.join("store")], ..Options::default() };
            let found = main_file(Path::new("/no/program"), Some(&id), &options).unwrap();
            assert!(found == bytes);
            let found = debug_file(Path::new("/no/program"), &elf, Some(&id), &options);
            assert!(found.is_some_and(|found| found == bytes));
            fs::remove_file(&place).unwrap();
        }

        // The module itself is found among debug files too.
        let main = main_file(Path::new("/no/program"), Some(&id), &options).unwrap();
        assert!(main == bytes);
        let refused = main_file(Path::new("/no/program"), Some(&other), &options);
        assert_eq!(refused, Err(ModuleError::OtherBuild { found: id, wanted: other }));
        fs::remove_dir_all(folder).unwrap();
    }
}
