# RStudio's server on the Unix socket $SUBLET_SOCKET, as an ordinary user. It runs in the session's working directory,
# on a machine or in an image, behind a gate that checks access.
own=$PWD/.sublet/rstudio
umask 077
mkdir -p "$own/data" "$own/config" "$own/run"
rm -f "$SUBLET_SOCKET"
for name in "${SUBLET_PROGRAM:-rserver}" rserver /usr/lib/rstudio-server/bin/rserver /usr/local/lib/rstudio-server/bin/rserver; do
    server=$(command -v "$name" 2>/dev/null) && break
done
[ -n "$server" ] || { echo "sublet: there is no rserver here" >&2; exit 127; }
printf 'provider=sqlite\ndirectory=%s\n' "$own/run" >"$own/database.conf"
USER=${USER:-$(id -un)} XDG_DATA_HOME=$own/data XDG_CONFIG_HOME=$own/config RSTUDIO_CONFIG_DIR=$own/config
export USER XDG_DATA_HOME XDG_CONFIG_HOME RSTUDIO_CONFIG_DIR
exec "$server" --server-daemonize=0 --server-user="$USER" --server-working-dir="$PWD" --server-data-dir="$own/run" \
    --database-config-file="$own/database.conf" --secure-cookie-key-file="$own/run/key" --auth-none=1 \
    --auth-validate-users=0 --www-socket="$SUBLET_SOCKET" --www-root-path="$SUBLET_BASE_URL" --www-verify-user-agent=0
