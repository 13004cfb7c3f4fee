# Completes each line of the file $1 by a Tab in an interactive shell.
mkdir -p ~/functions
about-memory completions zsh > ~/functions/_about-memory
zmodload zsh/zpty
zpty -b shell zsh -f -i
answer() {
    local part all=
    # The text of the screen, without the sequences of the line editor.
    for _ in {1..100}; do
        while zpty -r -t shell part; do all+=$part; done
        [[ $all == *$1* ]] && break
        sleep 0.1
    done
    print -r -- "$all" | sed 's/\x1b\[[0-9;?]*[a-zA-Z]//g; s/\r/\n/g'
}
zpty -w shell "PROMPT=; fpath+=(~/functions); autoload -U compinit; compinit -u -D; echo REA''DY"
answer READY > /dev/null
while read -r line; do
    echo "== $line"
    # The second key leaves the line for the command `:`, which prints the words.
    zpty -w -n shell "$line"$'\t'
    sleep 1
    zpty -w shell $'\C-aprint -r -- \C-e; echo DO\'\'NE'
    answer DONE
done < $1
