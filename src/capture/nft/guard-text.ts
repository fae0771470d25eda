/**
 * The guard's table as text: pure. It drops everything that the plan captures, whatever the state of the capture. While
 * a capture is in force no such packet reaches this table: TCP has been redirected to this machine, and everything else
 * leaves by the TUN.
 */
import type { CapturePlan } from "#core/capture.ts";
import { maskedPrefix } from "#capture/ranges.ts";
import { CARRIED } from "./captured.ts";
import { braced, prefixElements } from "./elements.ts";
import { exclusions, quoted } from "./exclusions.ts";
import { GUARD_TABLE, setNames } from "./names.ts";
import { capturesOwn, chain, prefixSets, type SetContents } from "./ruleset.ts";

const FAMILIES = [4, 6] as const;
const KEYWORD = { 4: "ip", 6: "ip6" } as const;

export type GuardContents = Omit<SetContents, "direct">;

/** For how long traffic is kept in; null: only fake addresses are, and the TUN's own. */
export type Keeps = { readonly seconds: number } | "for good" | null;

/** Takes the place of what was there, in one transaction. Empty with nothing to keep: see `GUARD_GONE`. */
export function guardText(plan: CapturePlan, contents: GuardContents, keeps: Keeps): string {
  const own = ownAddresses(plan);
  const parts = keeps === null ? [] : keeping(plan, contents, keeps);
  return `${GUARD_GONE}table ${GUARD_TABLE} {\n${[...parts, own].join("\n")}\n}\n`;
}

/** Harmless where there is none. */
const GUARD_GONE = `add table ${GUARD_TABLE}\ndelete table ${GUARD_TABLE}\n`;

/** After all routing has been done, so that the device is the one that a packet does leave by. */
function ownAddresses(plan: CapturePlan): string {
  const own = [
    ...plan.fakeRanges,
    ...[plan.inet4, plan.inet6].flatMap((each) => (each === null ? [] : [maskedPrefix(each.address)])),
  ];
  return chain("postrouting", "filter hook postrouting priority 90", [
    ...toDevices(plan, "accept"),
    ...FAMILIES.flatMap((family) => {
      const elements = prefixElements(own, family);
      return elements.length === 0 ? [] : [`${KEYWORD[family]} daddr ${braced(elements)} counter drop`];
    }),
  ]);
}

/** The name may not be known yet. */
function toDevices({ device }: CapturePlan, verdict: string): readonly string[] {
  return [
    `oifname "lo" ${verdict}`,
    ...(device.name === "" ? [] : [`oifname ${quoted(device.name)} ${verdict}`]),
  ];
}

const PROTOCOLS = ["tcp", "udp", "icmp", "ipv6-icmp"];

/**
 * The set of protocols is what the chains look into: where its elements run out the table is harmless, so that a program
 * that does not come back leaves nothing closed for good that was not asked for.
 */
function keeping(plan: CapturePlan, contents: GuardContents, keeps: Exclude<Keeps, null>): readonly string[] {
  const lasts = keeps === "for good" ? "" : ` timeout ${keeps.seconds}s`;
  const elements = PROTOCOLS.map((protocol) => `${protocol}${lasts}`);
  return [
    ...FAMILIES.flatMap((family) => prefixSets(contents, family)),
    `set kept { type inet_proto; flags timeout; elements = ${braced(elements)}; }`,
    // Keeps NAT active in the kernel: without any NAT chain the later packets of a redirected connection would leave
    // untranslated.
    chain("prerouting", "nat hook prerouting priority -98", []),
    ...forwarding(plan, contents),
    ...(capturesOwn(plan) ? sending(plan) : []),
  ];
}

/**
 * A packet from the TUN for a flow without a conntrack entry would create one in the wrong direction, and the flow's
 * later packets would bypass NAT.
 */
function forwarding(plan: CapturePlan, { marks }: GuardContents): readonly string[] {
  const { inputMark, outputMark } = plan.options;
  const from = plan.device.name === "" ? [] : [`iifname ${quoted(plan.device.name)}`];
  return [
    chain("forward", "filter hook forward priority -160", [
      ...from.map((device) => `${device} meta l4proto ${CARRIED} ct state new ct mark != ${inputMark} drop`),
      ...from.map((device) => `${device} accept`),
      ...toDevices(plan, "accept"),
      "meta l4proto @kept jump forwarded",
    ]),
    chain("forwarded", null, [
      "ct state untracked accept", // so is it past NAT
      `ct mark ${outputMark} accept`, // was found not to be captured
      ...(marks === null ? [] : [`meta mark & ${marks.direct} == ${marks.direct} accept`]),
      `ct direction reply ct mark != ${inputMark} accept`,
      ...exclusions(plan, { side: "prerouting", does: "guard" }),
      `ct mark ${inputMark} counter drop`,
      // Turned elsewhere by others, past us; what we have turned to this machine is still as it was only where NAT is gone.
      ...FAMILIES.map((family) => {
        const ip = KEYWORD[family];
        return `meta nfproto ipv${family} ct status dnat ct reply ${ip} saddr != @${setNames(family).local} accept`;
      }),
      "ct status dnat counter drop",
      "meta l4proto tcp ct state established,related accept", // is older than the capture
      dropped(plan),
    ]),
  ];
}

/**
 * Behind NAT (-100) and the chain that marks packets for the TUN (-150). Replies to connections into this machine pass,
 * so that no administrator is locked out.
 */
function sending(plan: CapturePlan): readonly string[] {
  const { inputMark, outputMark } = plan.options;
  return [
    chain("output", "filter hook output priority -90", [
      ...toDevices(plan, "accept"),
      `meta mark { ${inputMark}, ${outputMark} } accept`,
      "meta l4proto @kept jump sent",
    ]),
    chain("sent", null, [
      "ct state untracked accept",
      "ct direction reply accept",
      `ct mark ${outputMark} accept`,
      "udp sport 68 udp dport 67 accept", // DHCP, renewed from its server
      "udp sport 546 udp dport 547 accept",
      ...exclusions(plan, { side: "output", does: "guard" }),
      "ct status dnat accept",
      "meta l4proto tcp ct state established,related accept",
      dropped(plan),
    ]),
  ];
}

/** A family that the TUN has not is not captured, but refused where `strict-route` asks for it. */
function dropped({ inet4, inet6, options }: CapturePlan): string {
  const both = (inet4 !== null && inet6 !== null) || options.strictRoute;
  return `${both ? "" : `meta nfproto ipv${inet4 === null ? 6 : 4} `}counter drop`;
}
