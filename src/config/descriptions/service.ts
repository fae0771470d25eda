/** Keys of `svc` (managed users, the fleet) and of `traffic-control`. */
import type { Descriptions } from "#core/key-descriptions.ts";

export const service: Descriptions = {
  acme: "Certificates that an authority issues by ACME, for listeners and `tls` blocks that name their hosts in `acme` (docs/acme.md).",
  "acme.email": ["Where the authority may write to; it may be left out.", "me@example.com"],
  "agree-tos": ["Agreement to the authority's terms of service; without it nothing is issued.", true],
  "acme.directory": [
    "The authority: `production` or `staging` of Let's Encrypt, or the https:// URL of another one's directory.",
    "staging",
  ],
  "acme.ca": [
    "PEM text or path of what the directory's own certificate is checked by, besides the known authorities.",
    "company-ca.pem",
  ],
  "acme.folder": [
    "Folder for certificates, keys, the account and what failed; it is made where it is missing.",
    "acme",
  ],
  "acme.challenge": [
    "How names are validated: `http-01` by a web server on `acme.listen`, `tls-alpn-01` by the TLS listeners themselves.",
    "http-01",
  ],
  "acme.listen": [
    "Where HTTP-01 is answered, only while a name is validated. The authority asks on port 80.",
    ":80",
  ],
  "acme.proxy": ["Node or group that requests to the authority leave by. Empty: DIRECT.", "far"],
  update:
    "Newer versions of the program, signed, from a release folder; absent: `weir update` and `POST /upgrade` refuse (docs/update.md).",
  "update.url": [
    "Release folder, or its manifest (a name that ends in .json); http or https: the signature protects what comes.",
    "https://releases.example.com/weir/",
  ],
  "update.public-key": [
    "Ed25519 public key of those who make the releases: PEM text or path of a file with it.",
    "release-key.pub",
  ],
  "update.proxy": [
    "Node or group that the running weir downloads by, for `POST /upgrade`; `weir update -direct` goes without. Empty: DIRECT.",
    "far",
  ],
  "by-controller":
    "Whether `POST /upgrade` of the Controller updates the program; only a secret opens it, no token.",
  svc: "Users of listeners that are managed while the program runs.",
  "svc.secret": [
    "Secret of the admin API, at least 32 bytes; another one than the Controller's.",
    "at least thirty-two random bytes",
  ],
  "public-base-url": ["Address under which clients reach subscription links.", "https://sub.example.com"],
  "subscription-by-agent":
    "Whether a subscription that names no format comes in the one that the client's User-Agent reads best.",
  "svc.store": ["File that keeps users and their counters.", "svc-state.db"],
  "managed-listeners": ["Names of the listeners whose users are managed.", ["edge"]],
  "former-subscriptions": [
    "Table of subscription addresses that another program gave out, written by `weir import` (docs/import.md).",
    "former-subscriptions.json",
  ],
  "totp-file": [
    "File with the secret of one-time codes, as `weir totp` writes it: the two secrets alone open nothing any more, a session takes one of them and a code (docs/tokens.md).",
    "totp.txt",
  ],
  audit: "The log of who changed what.",
  "audit.keep": ["How long its entries are kept.", "365d"],
  "audit.entries": ["Entries that are kept at most; the oldest go first.", 100000],
  backup: "Backups that are made by the clock (docs/backup.md).",
  "backup.folder": ["Folder for them; it is made where it is missing.", "backups"],
  "backup.every": ["Time from one to the next, 1m to 31d.", "24h"],
  "backup.keep": ["How many are kept; the oldest go first.", 14],
  "passphrase-file": [
    "File whose first line encrypts them; where it is missing they are not encrypted.",
    "backup.passphrase",
  ],
  "backup.recipients": [
    "Public keys of age: each backup is a file of age that only their holders open; not together with passphrase-file.",
    ["age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj"],
  ],
  webhooks: "Programs that are told of events by signed requests (docs/events.md).",
  "webhooks.name": ["Name of the webhook; deliveries are kept under it.", "billing"],
  "webhooks.url": ["Address that gets a POST of each event; https.", "https://billing.example.com/weir"],
  "webhooks.secret": [
    "Key of the signatures: `whsec_` and the base64 of 24 to 64 random bytes.",
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
  ],
  "secret-file": [
    "File with up to four such keys, one a line; it is read for each delivery.",
    "billing.whsec",
  ],
  "webhooks.events": [
    "Types that are sent, `user.*` for all of a kind; empty: all.",
    ["user.*", "node.dead"],
  ],
  "allow-private": "Whether the receiver may be in the own network, and spoken to by http.",
  fleet: "Makes this program a node of several that share one database of users (PostgreSQL).",
  dsn: ["Address of the database.", "postgres://weir_node@db1,db2/weir?sslmode=verify-full"],
  "dsn-file": ["File that holds the address of the database.", "weir-dsn"],
  ca: ["PEM text or path of the authority that the database's certificate is checked by.", "db-ca.pem"],
  node: ["Name of this node; the host's name where it is missing.", "fra-1"],
  "fleet.address": ["Host that subscription links name for this node.", "fra-1.example.com"],
  labels: ["Words by which nodes are told apart and ordered.", { region: "eu" }],
  "on-partition": [
    "What users may do once what was granted to this node is spent and the database cannot be asked: `allow`, `overage`, `stop`.",
    "allow",
  ],
  "traffic-control": "Counting, limits, rolling quotas and reports.",
  enabled: "Whether this is in force.",
  "traffic-control.enabled":
    "Whether traffic is counted and limited; off, nothing else in the section is checked.",
  "traffic-control.store": ["File that keeps counters and reports.", "traffic-control.db"],
  "checkpoint-interval": ["How often counters are written to the file, 1m to 1h.", "5m"],
  "max-store-size": ["Bytes that the file may grow to; the oldest reports go first.", 67108864],
  "traffic-control.portal": "A page on which devices see what they have used.",
  "portal.listen": ["Address of the page.", "192.168.1.1:8080"],
  "portal.url": ["Address of the page as links name it.", "http://router.lan:8080"],
  reports: "Reports by hour, day and month.",
  "reports.enabled": "Whether reports are kept.",
  "hourly-retention": ["How long hours are kept.", "31d"],
  "daily-retention": ["How long days are kept.", "397d"],
  "monthly-retention": ["How long months are kept.", "397d"],
  "orphan-retention": [
    "How long reports of policies that are gone are kept, and histories of users who were removed.",
    "90d",
  ],
  "time-zone": ["Zone in which days begin; the system's where it is missing.", "Europe/Berlin"],
  "traffic-control.global": "The policy for all traffic together.",
  devices: "Policies for clients by their addresses.",
  "traffic-control.rules": "Policies for rules of the file.",
  targets: "Policies for nodes and groups.",
  id: [
    "What the policy is called in reports and the API; made of its contents where it is missing.",
    "living-room",
  ],
  name: ["What people see.", "Living room"],
  "upload-bps": ["Bits a second that all its sessions together may send; 0: no limit.", 10000000],
  "download-bps": ["Bits a second that all its sessions together may receive; 0: no limit.", 50000000],
  quota: "Bytes within a window that rolls with time.",
  "total-bytes": ["Bytes in both directions; 0: no cap.", 100000000000],
  "upload-bytes": ["Bytes sent; 0: no cap.", 10000000000],
  "download-bytes": ["Bytes received; 0: no cap.", 100000000000],
  window: ["Length of the window, 1h to 365d.", "30d"],
  "overage-upload-bps": [
    "Bits a second that may be sent while a cap is reached; 0: no further limit.",
    1000000,
  ],
  "overage-download-bps": [
    "Bits a second that may be received while a cap is reached; 0: no further limit.",
    1000000,
  ],
  portal: "Whether the portal shows it.",
  "device-identity": [
    "By what a device policy with a `mac` knows its device: `address`: by `source-cidrs` alone; `neighbour`: by the kernel's neighbours, `source-cidrs` where these do not know the hardware address.",
    "neighbour",
  ],
  leases: [
    "Lease files of DHCP servers on this machine (dnsmasq, ISC dhcpd, systemd-networkd), by which reports name devices.",
    ["dnsmasq.leases"],
  ],
  mac: [
    "Hardware address: names the device, and with `device-identity: neighbour` finds it.",
    "02:00:00:00:00:01",
  ],
  "source-cidrs": ["Addresses and networks by which the device is known.", ["192.168.1.20/32"]],
  "traffic-control.rules.type": ["Type of the rule, as in `rules`.", "DOMAIN-SUFFIX"],
  payload: ["Payload of the rule.", "example.org"],
  "traffic-control.rules.target": ["Target of the rule.", "DIRECT"],
  kind: ["What `target` names: a `proxy` (a node) or a `group`.", "group"],
  "targets.target": ["Name of the node or group.", "Abroad"],
};
