/** Newer versions of the program. */
export const update = {
  "update.title": "Version",
  "update.running": "Runs",
  "update.check": "Check for a newer version",
  "update.off": "Where newer versions come from is not configured: `update.url` and `update.public-key`.",
  "update.newer": "{version} is newer.",
  "update.same": "This is the newest version.",
  "update.older": "The release folder has {version}, which is older: nothing newer is there.",
  "update.unknown": "The release folder has {version}, which cannot be told to be newer.",
  "update.byHand": "`weir update` on the machine takes it; with `update.by-controller` this page does.",
  "update.take": "Update to {version}",
  "update.ask": "Update the program?",
  "update.text":
    "{version} is downloaded, checked against the key and put in place. It takes over without a cut connection; where it does not, this version goes on. The page loads anew.",
  "update.failed": "It was not updated",
  "update.busy": "Updating; this can take minutes",
  "update.done": "{version} runs",
} as const;
