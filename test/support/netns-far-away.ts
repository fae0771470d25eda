/** A row whose router knows the origin by its default route only, as it knows the Internet, and forwards. */
import { FAMILIES, openRow, ORIGIN, type Row } from "./netns-row.ts";

/** Of the cable between router and origin. */
const NEAR = ["10.255.0.1", "fd00:ff::1"] as const;
const FAR = ["10.255.0.2", "fd00:ff::2"] as const;

export async function openRoutedRow(label: string): Promise<Row> {
  const row = await openRow(label);
  try {
    const { router, origin } = row;
    await router.run("sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1");
    await router.ip(
      "address del 198.51.100.1/24 dev up0",
      "address del fd00:2::1/64 dev up0",
      `address add ${NEAR[0]}/30 dev up0`,
      `address add ${NEAR[1]}/64 dev up0 nodad`,
      `route add default via ${FAR[0]}`,
      `-6 route add default via ${FAR[1]}`,
    );
    await origin.ip(
      `address add ${FAR[0]}/30 dev down0`,
      `address add ${FAR[1]}/64 dev down0 nodad`,
      // Every client gets its answer from the origin's own address.
      `route replace 10.255.0.0/30 dev down0 scope link src ${ORIGIN[0]}`,
      `-6 route add fd00:ff::/64 dev down0 src ${ORIGIN[1]} metric 1`,
      `route add default via ${NEAR[0]} src ${ORIGIN[0]}`,
      `-6 route add default via ${NEAR[1]} src ${ORIGIN[1]}`,
    );
    return row;
  } catch (error) {
    await row[Symbol.asyncDispose]();
    throw error;
  }
}

/** Is the client connected with the origin through hosts that only forward? */
export async function isPlainlyConnected(row: Row): Promise<boolean> {
  const answers = await Promise.all(
    FAMILIES.map(({ url }) =>
      row.client.run("curl", "-s", "--max-time", "1", url).then(
        (text) => text.startsWith("hello to "),
        () => false,
      ),
    ),
  );
  return answers.every(Boolean);
}

/** What leaves the router as it came from the client: weir sends by sockets of the router. */
export const PASSED_BY = `
table inet weir_test {
  counter passed_by { }
  chain out {
    type filter hook postrouting priority 300;
    oifname "up0" ip saddr 203.0.113.0/24 counter name passed_by
    oifname "up0" ip6 saddr fd00:1::/64 counter name passed_by
  }
}
`;

/** Packets. */
export async function passedBy({ router }: Row): Promise<number> {
  const shown = await router.run("nft", "list", "counter", "inet", "weir_test", "passed_by");
  return Number(/packets (\d+)/.exec(shown)?.[1]);
}
