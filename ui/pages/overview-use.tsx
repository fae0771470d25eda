import { useState } from "preact/hooks";
import type { Configs } from "#ui/api/types.ts";
import { CopyButton } from "#ui/parts/copy.tsx";
import { Segments } from "#ui/parts/inputs.tsx";
import { QrCode } from "#ui/parts/qr.tsx";
import { Button, Panel } from "#ui/parts/small.tsx";
import { useWords } from "#ui/state/context.ts";
import { proxyAddress, proxyText, WAYS, type Way } from "#ui/state/use-proxy.ts";

/** The address of the proxy, as each system wants it. */
export function UseProxy({ configs }: { readonly configs: Configs }) {
  const { t } = useWords();
  const [way, setWay] = useState<Way>("address");
  const [code, setCode] = useState(false);
  const address = proxyAddress(configs, location.hostname);
  if (address === null)
    return (
      <Panel title={t("use.title")}>
        <p class="note">{t("use.none")}</p>
      </Panel>
    );
  const text = proxyText(address, way);
  return (
    <Panel
      title={t("use.title")}
      tools={
        <Segments
          label={t("use.for")}
          value={way}
          options={WAYS.map(([value, name]) => [value, t(name)])}
          onChange={setWay}
        />
      }
    >
      <p class="secret">
        <code dir="ltr">{text}</code>
        <CopyButton text={text} label={t("use.copy")} done={t("use.copied")} />
        {address.isShared && (
          <Button label={code ? t("user.hideQr") : t("user.qr")} onPress={() => setCode(!code)} />
        )}
      </p>
      <p class="note">{address.isShared ? t("use.shared") : t("use.thisMachine")}</p>
      {code && <QrCode text={text} label={t("use.qrLabel")} />}
    </Panel>
  );
}
