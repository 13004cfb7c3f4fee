//! The console of Windows at standard output, or a terminal of MSYS, such as Git Bash.

use ::console::Term;

/// Returns its width in columns, if it reports one. A terminal of MSYS does not.
pub(super) fn columns(_: impl Sized) -> Option<usize> {
    let (_, columns) = Term::stdout().size_checked()?;
    Some(usize::from(columns))
}

/// Has the console act on escape sequences. Returns whether it does: one before Windows 10 does
/// not.
pub(super) fn has_colours() -> bool {
    Term::stdout().features().colors_supported()
}
