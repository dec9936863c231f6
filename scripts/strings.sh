#!/bin/sh
# Prints the program's texts for people: the help of every command, then the texts in its code, with their places.
# usage: scripts/strings.sh PROGRAM
set -eu
program=$1
"$program" --help
commands=$("$program" --help | awk '/^Commands:/ { on = 1; next } /^[^ ]/ { on = 0 } on && /^  [a-z]/ { print $1 }')
for command in $commands; do
    [ "$command" = help ] && continue
    printf '\n== %s\n' "$command"
    "$program" "$command" --help
done
printf '\n== texts in the code: two words or more between quotation marks, tests left out\n'
find crates -path '*/src/*' -name '*.rs' ! -name 'tests.rs' ! -path '*/tests/*' | sort | while read -r file; do
    awk -v file="$file" '
        /^#\[cfg\(test\)\]/ { exit }
        /^ *\/\// { next }
        {
            line = $0
            while (match(line, /"([^"\\]|\\.)*"/)) {
                text = substr(line, RSTART + 1, RLENGTH - 2)
                line = substr(line, RSTART + RLENGTH)
                if (text ~ /[a-z][a-z]+[ ,:;]+[a-z{][a-z]*/) printf "%s:%d: %s\n", file, FNR, text
            }
        }' "$file"
done
