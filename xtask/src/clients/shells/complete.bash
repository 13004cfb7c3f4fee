# Completes each line of the file $1 as a Tab does.
source <(about-memory completions bash)
while read -r line; do
    read -ra COMP_WORDS <<< "$line"
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMP_TYPE=9 COMPREPLY=()
    "$(complete -p about-memory | sed 's/.* -F \([^ ]*\) .*/\1/')" about-memory "${COMP_WORDS[COMP_CWORD]}"
    echo "== $line"
    printf '%s\n' "${COMPREPLY[@]}"
done < "$1"
