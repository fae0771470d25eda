import type { Setup } from "#ui/api/setup-types.ts";
import type { useFields } from "#ui/parts/edit-form.tsx";
import { Segments, Select, Switch } from "#ui/parts/inputs.tsx";
import { Rich } from "#ui/parts/rich.tsx";
import { Button } from "#ui/parts/small.tsx";
import { useWords } from "#ui/state/context.ts";
import { isManaged, RECIPE_IDS, RECIPES, type ListenerFields, type RecipeId } from "#ui/state/recipes.ts";
import { usePortFault } from "#ui/state/setup.ts";
import { TargetProbe } from "./listener-target.tsx";

type Form = ReturnType<typeof useFields<ListenerFields>>;

interface Props {
  readonly setup: Setup;
  readonly form: Form;
  readonly busy: boolean;
  readonly onReview: () => void;
  readonly onClose: () => void;
}

export function firstFields({ svc, listeners }: Setup): ListenerFields {
  return {
    recipe: "reality",
    name: freeName(listeners.map(({ name }) => name)),
    port: "443",
    listen: "0.0.0.0",
    certificateFrom: "files",
    certificate: "",
    privateKey: "",
    serverName: location.hostname,
    email: "",
    challenge: "http-01",
    agrees: false,
    dest: "",
    destName: "",
    userName: "",
    publicUrl: svc?.public_base_url || `https://${location.hostname}`,
  };
}

function freeName(taken: readonly string[]): string {
  let name = "edge";
  for (let count = 2; taken.includes(name); count++) name = `edge-${count}`;
  return name;
}

/** What a new listener shall be; what can be made up is made by the program. */
export function ListenerForm({ setup, form, busy, onReview, onClose }: Props) {
  const { t } = useWords();
  const { fields, set, text } = form;
  const recipe = RECIPES[fields.recipe];
  const submit = (event: Event): void => {
    event.preventDefault();
    if (!busy) onReview();
  };
  return (
    <form class="fields" onSubmit={submit}>
      <Select<RecipeId>
        label={t("setup.protocol")}
        value={fields.recipe}
        options={RECIPE_IDS.map((id) => [id, RECIPES[id].label] as const)}
        onChange={(next) => set({ recipe: next })}
      />
      {text("name", t("common.name"), "", true)}
      <Place form={form} network={recipe.network} />
      {recipe.security === "reality" && <RealityFields form={form} />}
      {recipe.security === "tls" && <CertificateFields form={form} hasAcme={setup.acme} />}
      <UserFields form={form} isManaged={isManaged(setup, recipe)} hasUser={recipe.id !== "shadowsocks"} />
      <p class="note wide">{t("setup.keysMade")}</p>
      {isManaged(setup, recipe) && setup.svc === null && (
        <p class="note wide">
          <Rich text={t("setup.secretMade")} />
        </p>
      )}
      <div class="actions wide">
        <Button label={t("common.cancel")} onPress={onClose} />
        <Button label={t("setup.review")} kind="main" busy={busy} />
      </div>
    </form>
  );
}

function Place({
  form: { fields, set, text },
  network,
}: {
  readonly form: Form;
  readonly network: "tcp" | "udp";
}) {
  const { t } = useWords();
  const fault = usePortFault(fields.listen, fields.port, network);
  return (
    <>
      <div>
        {text("port", t("setup.port"), "443", true)}
        <p class={fault ? "error" : "note"} role="status">
          {fault === null ? "" : fault === "" ? t("setup.portFree") : t("setup.portTaken", { why: fault })}
        </p>
      </div>
      <Select
        label={t("setup.reach")}
        value={fields.listen}
        options={[
          ["0.0.0.0", t("setup.everywhere")],
          ["::", t("setup.everywhere6")],
          ["127.0.0.1", t("setup.hereOnly")],
        ]}
        onChange={(listen) => set({ listen })}
      />
    </>
  );
}

function RealityFields({ form: { set, text } }: { readonly form: Form }) {
  const { t } = useWords();
  return (
    <>
      {text("dest", t("setup.dest"), "www.example.org:443", true)}
      {text("destName", t("setup.destName"), "www.example.org", true)}
      <TargetProbe
        onChoose={({ host, port, server_name: destName }) =>
          set({ dest: `${host.includes(":") ? `[${host}]` : host}:${port}`, destName })
        }
      />
    </>
  );
}

interface CertificateProps {
  readonly form: Form;
  readonly hasAcme: boolean;
}

function CertificateFields({ form, hasAcme }: CertificateProps) {
  const { t } = useWords();
  const { fields, set, text } = form;
  return (
    <>
      <div class="wide">
        <Segments
          label={t("setup.certificate")}
          value={fields.certificateFrom}
          options={[
            ["files", t("setup.files")],
            ["acme", t("setup.acme")],
            ["self-signed", t("setup.selfSigned")],
          ]}
          onChange={(certificateFrom) => set({ certificateFrom })}
        />
      </div>
      {fields.certificateFrom === "files" ? (
        <>
          {text("certificate", t("setup.certificateFile"), "certs/edge.pem", true)}
          {text("privateKey", t("setup.keyFile"), "certs/edge.key", true)}
        </>
      ) : (
        <>
          {text("serverName", t("setup.serverName"), "www.example.org", true)}
          <p class="note">
            {t(fields.certificateFrom === "acme" ? "setup.acmeText" : "setup.selfSignedText")}
          </p>
        </>
      )}
      {fields.certificateFrom === "acme" && !hasAcme && <AcmeFields form={form} />}
    </>
  );
}

/** What the `acme` block says, where there is none yet. */
function AcmeFields({ form: { fields, set, text } }: { readonly form: Form }) {
  const { t } = useWords();
  return (
    <>
      {text("email", t("setup.acmeEmail"), "me@example.com")}
      <Select
        label={t("setup.acmeChallenge")}
        value={fields.challenge}
        options={[
          ["http-01", t("setup.acmeHttp")],
          ["tls-alpn-01", t("setup.acmeTls")],
        ]}
        onChange={(challenge) => set({ challenge })}
      />
      <div class="wide">
        <Switch label={t("setup.acmeAgree")} on={fields.agrees} onChange={(agrees) => set({ agrees })} />
      </div>
    </>
  );
}

interface UserFieldsProps {
  readonly form: Form;
  readonly isManaged: boolean;
  readonly hasUser: boolean;
}

function UserFields({ form: { text }, isManaged: managed, hasUser }: UserFieldsProps) {
  const { t } = useWords();
  if (!managed) return hasUser ? text("userName", t("setup.userName"), "", true) : null;
  return (
    <div class="wide">
      {text("publicUrl", t("setup.publicUrl"), "https://proxy.example.com", true)}
      <p class="note">
        <Rich text={t("setup.publicUrlText")} />
      </p>
    </div>
  );
}
