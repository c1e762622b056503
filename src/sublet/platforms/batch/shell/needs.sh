# For scripts that remove shared files: which sessions need them. The current directory is `kept`.
is_over() { # argument: a session's key: whether its program has ended, in all parts, or never will begin
    if [ -e "../sessions/$1/parts" ]; then [ -e "../sessions/$1/joined" ]; else [ -e "../sessions/$1/end.json" ]; fi
}
needs_files() { # argument: a session's key; one that is over is kept for its results, and reads nothing any more
    [ -d "../incoming/$1" ] || { [ -d "../sessions/$1" ] && ! is_over "$1"; }
}
