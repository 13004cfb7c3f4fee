# Completes each line of the file $1 as a Tab does.
about-memory completions fish | source
while read -l line
    echo "== $line"
    complete -C $line
end < $argv[1]
