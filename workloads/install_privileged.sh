#!/bin/sh
# Installs the helper noisebook-priv with the few rights that it needs; called by `sudo make privileged`.
#   install_privileged.sh [FOLDER]    (default: /usr/local/bin)
# Only the group of the user who called sudo may execute it; PRIV_GROUP=name names another group.
set -eu
folder=${1:-/usr/local/bin}
program=build/bin/noisebook-priv
rights=cap_setuid,cap_chown,cap_sys_admin,cap_sys_resource,cap_perfmon+p

[ -x "$program" ] || { echo "There is no $program yet. First, as yourself: make env"; exit 1; }
[ "$(id -u)" = 0 ] || { echo "Only root may give rights to a program: sudo make privileged"; exit 1; }
command -v setcap >/dev/null || { echo "There is no setcap here (Debian: apt-get install libcap2-bin). Without it: sudo, see SECURITY.md"; exit 1; }

group=${PRIV_GROUP:-$(id -gn "${SUDO_USER:-root}")}
install -m 0750 -o root -g "$group" "$program" "$folder/noisebook-priv.new"
setcap "$rights" "$folder/noisebook-priv.new" || { rm -f "$folder/noisebook-priv.new"; echo "This file system takes no file capabilities. Without them: sudo, see SECURITY.md"; exit 1; }
mv -f "$folder/noisebook-priv.new" "$folder/noisebook-priv"
echo "Installed: $folder/noisebook-priv, for the group $group. What it may do: SECURITY.md. To take it away: sudo rm $folder/noisebook-priv"
