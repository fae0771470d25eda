/** The first page: how to use the proxy, and what is not well. */
export const first = {
  "use.title": "Use this proxy",
  "use.none": "No port for HTTP or SOCKS clients is open: set mixed-port in the configuration.",
  "use.for": "For",
  "use.address": "Address",
  "use.shell": "Shell",
  "use.powershell": "PowerShell",
  "use.git": "Git",
  "use.copy": "Copy",
  "use.copied": "Copied",
  "use.shared": "Other machines can use it at this address.",
  "use.thisMachine":
    "Only the machine that weir runs on can use it; “Allow LAN” in the settings opens it to others.",
  "use.qrLabel": "QR code of the proxy address",
  "trouble.title": "What is not well",
  "trouble.none": "Nothing: nodes, rules, lists and the log are quiet.",
  "trouble.show": "Show",
  "trouble.showOne": "Show: {what}",
  "trouble.unusable": { one: "{count} node cannot be used", other: "{count} nodes cannot be used" },
  "trouble.silent": {
    one: "{count} node did not answer the last test",
    other: "{count} nodes did not answer the last test",
  },
  "trouble.deadRules": { one: "{count} rule can match nothing", other: "{count} rules can match nothing" },
  "trouble.emptyProviders": {
    one: "{count} list was never fetched",
    other: "{count} lists were never fetched",
  },
  "trouble.warnings": { one: "{count} new warning in the log", other: "{count} newest warnings in the log" },
} as const;
