pause_job() {
    tr '\0' ' ' <"/proc/${id%.toy}/cmdline" 2>/dev/null | grep -qF "sessions/$key" || return 0
    kill -s "$signal" -- "-${id%.toy}" && echo running
}

