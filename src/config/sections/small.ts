/** Sections of a few keys each: profile, ntp, experimental. */
import { block, flag, int, leftOut, listenPort, name, text } from "#core/fields.ts";

export const profile = block({
  "store-selected": flag().default(true),
  "store-fake-ip": flag().default(false),
});

export const ntp = block({
  enable: flag().default(false),
  server: leftOut(name()).default("time.apple.com"),
  port: listenPort().default(123),
  /** Minutes. */
  interval: leftOut(int(1, 525_600)).default(30),
  "dialer-proxy": text().default(""),
  "write-to-system": flag().default(false),
});

export const experimental = block({
  "quic-go-disable-gso": flag().default(false),
  "quic-go-disable-ecn": flag().default(true),
  "dialer-ip4p-convert": flag().default(false),
});
