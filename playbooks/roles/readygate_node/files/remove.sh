# Takes the node plugin off this host: `sh -s FOLDER look|remove < remove.sh`. Prints `there` if there was anything of it.
folder=$1
name=readygate-node
units=/etc/systemd/system
for one in "$folder" "$units/$name.service" "$units/multi-user.target.wants/$name.service" "$units/$name.service.d"; do
    if [ -e "$one" ] || [ -L "$one" ]; then there=yes; fi
done
[ "${there:-no}" = yes ] || exit 0
echo there
[ "$2" = remove ] || exit 0
if [ -e "$folder/lock" ]; then
    exec 9< "$folder/lock"
    flock 9 # a version that an interrupted play has left being put in place is so first
fi
if [ -e "$units/$name.service" ]; then systemctl disable --quiet --now "$name.service"; fi
rm -rf "$units/$name.service" "$units/$name.service.new" "$units/multi-user.target.wants/$name.service" "$units/$name.service.d"
rm -f "/run/systemd/system/$name-trial.service"
systemctl daemon-reload
systemctl reset-failed "$name.service" 2> /dev/null
rm -rf "$folder" || exit 1
rmdir "$(dirname "$folder")" 2> /dev/null
exit 0
