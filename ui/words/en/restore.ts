/** Of the dialog that puts a backup in force. */
export const restore = {
  "restore.title": "Restore a backup",
  "restore.file": "Backup file",
  "restore.key": "Passphrase or key of age, where it is encrypted",
  "restore.keyHint":
    "Of a key of age the line AGE-SECRET-KEY-1…. It is sent to weir for reading the file and kept nowhere.",
  "restore.look": "Look at it",
  "restore.made": "Made",
  "restore.version": "By",
  "restore.listeners": "Listeners",
  "restore.choices": "Groups with a choice",
  "restore.same": "the same as now",
  "restore.different": "another one",
  "restore.lost": "What is there now and not in the backup",
  "restore.lostNothing": "No user, token or listener is missing in it.",
  "restore.lostAlways":
    "Traffic, audit entries and events since the backup was made are not in it. All that is there now is kept aside on the machine, as *.before-restore-*, and the configuration as one of its versions.",
  "restore.otherSecret":
    "Afterwards the page asks for another secret: the one in the backup's configuration.",
  "restore.otherAddress": "Afterwards the Controller listens at another address: this page may not find it.",
  "restore.sure": "Replace the present state; all connections are cut",
  "restore.other": "Choose another file",
  "restore.put": "Restore and restart",
  "restore.restarting": "The backup lies ready; weir restarts by it",
  "restore.open": "Restore a backup …",
  "restore.entries": { one: "{count} entry", other: "{count} entries" },
} as const;
