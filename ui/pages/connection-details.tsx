import { hostPort } from "#ui/format.ts";
import { Dialog } from "#ui/parts/dialog.tsx";
import { type Fact, Facts } from "#ui/parts/facts.tsx";
import { Button, Chain } from "#ui/parts/small.tsx";
import { useWords } from "#ui/state/context.ts";
import { ageMs, REASONS, type LiveConnection } from "#ui/state/live.ts";
import type { Words } from "#ui/words/words.ts";

interface Props {
  readonly connection: LiveConnection;
  /** It is no longer in the list. */
  readonly ended: boolean;
  readonly onEnd: () => void;
  readonly onClose: () => void;
}

export function ConnectionDetails({ connection, ended, onEnd, onClose }: Props) {
  const words = useWords();
  const { t } = words;
  return (
    <Dialog title={connection.name} onClose={onClose}>
      <Facts rows={factsOf(words, connection)} />
      <div class="actions">
        <a class="button plain" href={whyAddress(connection)}>
          {t("connection.why")}
        </a>
        {ended ? (
          <Button label={t("connection.ended")} disabled />
        ) : (
          <Button label={t("connection.close")} kind="danger" onPress={onEnd} />
        )}
      </div>
    </Dialog>
  );
}

function factsOf(words: Words, connection: LiveConnection): readonly Fact[] {
  const { t } = words;
  const { metadata, chains, rule, rulePayload, upload, download, upSpeed, downSpeed } = connection;
  return [
    [t("connections.rule"), rule === "" ? t("connection.noRule") : `${rule} ${rulePayload}`],
    [t("connections.way"), <Chain names={chains.toReversed()} />],
    [t("connection.network"), `${metadata.network}, ${metadata.type}`],
    [t("connection.source"), hostPort(metadata.sourceIP, metadata.sourcePort)],
    [
      t("common.listener"),
      t("connection.onPort", { name: metadata.inboundName, port: metadata.inboundPort }),
    ],
    [t("connection.user"), metadata.inboundUser],
    [t("connection.program"), metadata.processPath || metadata.process],
    [t("common.name"), metadata.host],
    [t("connection.sniffed"), metadata.sniffHost],
    [t("connection.address"), metadata.destinationIP],
    [t("connection.nameFrom"), metadata.dnsMode === "normal" ? "" : metadata.dnsMode],
    [t("connection.reachedAt"), metadata.remoteDestination],
    [t("common.download"), amountNow(words, download, downSpeed)],
    [t("common.upload"), amountNow(words, upload, upSpeed)],
    [t("connections.age"), words.duration(ageMs(connection))],
    [t("ended.why"), endText(words, connection)],
    [t("connection.id"), connection.id],
  ];
}

const amountNow = (words: Words, bytes: number, speed: number): string =>
  words.t("connection.amountNow", { amount: words.bytes(bytes), rate: words.rate(speed) });

function endText({ t }: Words, { reason, detail = "" }: LiveConnection): string {
  if (reason === undefined) return "";
  return detail === "" ? t(REASONS[reason]) : t("ended.withDetail", { reason: t(REASONS[reason]), detail });
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
