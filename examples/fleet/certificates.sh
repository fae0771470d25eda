#!/bin/sh
# certificates.sh FOLDER NAME: an authority of one's own, and a certificate of the database for a host name. What is there stays.
set -eu
cd "$1"
[ -e server.pem ] && exit 0
umask 077
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -days 3650 \
  -subj "/CN=authority of the fleet" -keyout ca.key -out ca.pem
openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -subj "/CN=$2" -keyout server.key -out server.csr
printf 'subjectAltName=DNS:%s\nbasicConstraints=CA:FALSE\n' "$2" > server.ext
openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 365 -extfile server.ext -out server.pem
rm server.csr server.ext
chmod 644 ca.pem server.pem
# PostgreSQL reads a key that belongs to it alone.
if id postgres > /dev/null 2>&1 && [ "$(id -u)" = 0 ]; then chown postgres . server.key; fi
chmod 755 .
