#!/usr/bin/env bash
# Makes a backup of a folder and keeps the newest few.
set -euo pipefail

readonly KEEP=${KEEP:-7}
source_dir=${1:?usage: backup.sh SOURCE TARGET}
target_dir=${2:?usage: backup.sh SOURCE TARGET}
stamp=$(date -u +%Y%m%dT%H%M%SZ)
archive="$target_dir/backup-$stamp.tar.gz"
tmp=$(mktemp "$target_dir/.backup.XXXXXX")
trap 'rm -f -- "$tmp"' EXIT INT TERM

log() { printf '%s %s\n' "$(date -u +%H:%M:%S)" "$*" >&2; }

if ! [[ -d $source_dir && -w $target_dir ]]; then
    log "cannot read $source_dir or cannot write $target_dir"
    exit 2
fi

log "packing $source_dir ($(du -sh -- "$source_dir" | cut -f1))"
tar --create --gzip --file "$tmp" \
    --exclude-vcs --exclude='*.tmp' --exclude='node_modules' \
    --directory "$(dirname -- "$source_dir")" -- "$(basename -- "$source_dir")"

if ! gzip --test "$tmp"; then
    log "the archive is damaged"
    exit 1
fi
mv -- "$tmp" "$archive"
log "wrote $archive, $(stat -c %s -- "$archive") bytes, sha256 $(sha256sum -- "$archive" | awk '{print $1}')"

mapfile -t old < <(find "$target_dir" -maxdepth 1 -name 'backup-*.tar.gz' -printf '%f\n' | sort -r | tail -n +$((KEEP + 1)))
for name in "${old[@]}"; do
    log "removing $name"
    rm -f -- "$target_dir/$name"
done

case "${NOTIFY:-none}" in
    mail) printf 'Backup %s is done.\n' "$stamp" | mail -s "backup" "$MAILTO" ;;
    none) ;;
    *) log "unknown NOTIFY=$NOTIFY" ;;
esac
