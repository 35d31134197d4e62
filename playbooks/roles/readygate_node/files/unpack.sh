# The root file system of an image, out of an archive of the Open Container Initiative, into FOLDER/images/IMAGE:
#   sh unpack.sh FOLDER IMAGE ARCHIVE LAYER...
# LAYER: the SHA-256 of each layer, lowest first. The folder is there whole or not at all; the archive is removed. Of two
# runs the second waits for the first, and has nothing left to do where that was of the same image.
set -eu
folder=$1 image=$2 archive=$3
shift 3
staging=$folder/unpacking
exec 9> "$folder/lock"
flock 9 # also while a version is put in place
trap 'rm -rf "$staging" "$archive"' EXIT
if [ -d "$folder/images/$image" ]; then exit 0; fi
rm -rf "$staging"
mkdir -p "$staging/root" "$folder/images"
for layer; do
    tar --extract --to-stdout --file="$archive" "blobs/sha256/$layer" > "$staging/layer"
    echo "$layer  $staging/layer" | sha256sum --check --status || { echo "the archive's layer $layer is damaged" >&2; exit 1; }
    tar --extract --gzip --numeric-owner --same-owner --same-permissions --file="$staging/layer" --directory="$staging/root"
done
rm "$staging/layer"
mkdir -p "$staging/root/host"
chmod 0755 "$staging/root"
sync -f "$staging/root"
mv -T "$staging/root" "$folder/images/$image"
# Where SELinux is enforced, systemd starts what is labelled as a program.
if command -v restorecon > /dev/null; then restorecon -R "$folder/images/$image" || true; fi
