import { bytesText, durationText, hostPort, rateText } from "#ui/format.ts";
import { Dialog } from "#ui/parts/dialog.tsx";
import { type Fact, Facts } from "#ui/parts/facts.tsx";
import { Button, Chain } from "#ui/parts/small.tsx";
import type { LiveConnection } from "#ui/state/live.ts";

interface Props {
  readonly connection: LiveConnection;
  /** It is no longer in the list. */
  readonly ended: boolean;
  readonly onEnd: () => void;
  readonly onClose: () => void;
}

export function ConnectionDetails({ connection, ended, onEnd, onClose }: Props) {
  return (
    <Dialog title={connection.name} onClose={onClose}>
      <Facts rows={factsOf(connection)} />
      <div class="actions">
        <a class="button plain" href={whyAddress(connection)}>
          Why there?
        </a>
        {ended ? (
          <Button label="It has ended" disabled />
        ) : (
          <Button label="Close connection" kind="danger" onPress={onEnd} />
        )}
      </div>
    </Dialog>
  );
}

const NO_RULE = "No rule decided: mode global or direct, or none matched";

function factsOf(connection: LiveConnection): readonly Fact[] {
  const { metadata, chains, rule, rulePayload, upload, download, upSpeed, downSpeed, start } = connection;
  return [
    ["Rule", rule === "" ? NO_RULE : `${rule} ${rulePayload}`],
    ["Way", <Chain names={chains.toReversed()} />],
    ["Network", `${metadata.network}, ${metadata.type}`],
    ["Source", hostPort(metadata.sourceIP, metadata.sourcePort)],
    ["Listener", `${metadata.inboundName} (port ${metadata.inboundPort})`],
    ["User", metadata.inboundUser],
    ["Program", metadata.processPath || metadata.process],
    ["Name", metadata.host],
    ["Name found by sniffing", metadata.sniffHost],
    ["Address", metadata.destinationIP],
    ["Name comes from", metadata.dnsMode === "normal" ? "" : metadata.dnsMode],
    ["Reached at", metadata.remoteDestination],
    ["Download", `${bytesText(download)}, now ${rateText(downSpeed)}`],
    ["Upload", `${bytesText(upload)}, now ${rateText(upSpeed)}`],
    ["Age", durationText(Date.now() - Date.parse(start))],
    ["Id", connection.id],
  ];
}

/** The question for the rules that this connection stands for. */
function whyAddress({ metadata }: LiveConnection): string {
  const query = new URLSearchParams({
    destination: metadata.host || metadata.destinationIP,
    port: metadata.destinationPort,
    network: metadata.network,
    source: metadata.sourceIP,
  });
  return `#/explain?${query}`;
}
