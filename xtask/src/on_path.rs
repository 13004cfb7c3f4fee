//! Finds programs on the path.

use std::path::PathBuf;

/// Returns the first of these names on the path, or a message that names Debian's package.
pub(crate) fn find(names: &[&str], package: &str) -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let mut candidates =
        names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    candidates.find(|file| file.is_file()).ok_or_else(|| {
        let names = names.join(" or ");
        format!("there is no {names} on the path (Debian: apt-get install {package})")
    })
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn what_is_missing_is_said_with_the_remedy() {
        assert!(find(&["no-such-program", "sh"], "dash").is_ok());
        let words =
            "there is no no-such-program or nor-this on the path (Debian: apt-get install none)";
        assert_eq!(find(&["no-such-program", "nor-this"], "none"), Err(words.to_owned()));
    }
}
