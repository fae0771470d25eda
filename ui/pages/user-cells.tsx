import type { ManagedUser } from "#ui/api/admin-types.ts";
import { Tag } from "#ui/parts/small.tsx";
import { useWords } from "#ui/state/context.ts";
import { StateTag } from "./user-details.tsx";

interface Props {
  readonly user: ManagedUser;
  readonly isChosen: boolean;
  readonly onChoose: (on: boolean) => void;
  readonly onOpen: () => void;
}

/** One row of the table of users. */
export function UserCells({ user, isChosen, onChoose, onOpen }: Props) {
  const words = useWords();
  const { name, inbound, quota, expires_at: end } = user;
  return (
    <>
      <span role="cell" class="c-main chooses">
        <input
          type="checkbox"
          aria-label={words.t("bulk.choose", { name })}
          checked={isChosen}
          onChange={(event) => onChoose(event.currentTarget.checked)}
        />
        <button type="button" class="link" onClick={onOpen} title={name}>
          {name}
        </button>
        {user.labels !== undefined && (
          <span class="labels">
            {user.labels.map((label) => (
              <Tag key={label}>{label}</Tag>
            ))}
          </span>
        )}
      </span>
      <span role="cell" class="c-rule">
        <StateTag user={user} />
      </span>
      <span role="cell" class="c-way text">
        {inbound}
      </span>
      <span role="cell" class="c-quota number">
        {quota !== undefined &&
          words.t("bulk.ofQuota", {
            used: words.bytes(quota.used_bytes),
            total: words.bytes(quota.total_bytes),
          })}
      </span>
      <span role="cell" class="c-end number">
        {end !== undefined && words.day(end)}
      </span>
      <span role="cell" class="c-down number">
        {words.bytes(user.download_bytes)}
      </span>
      <span role="cell" class="c-up number">
        {words.bytes(user.upload_bytes)}
      </span>
      <span role="cell" class="c-age number">
        {words.count(user.active_connections)}
      </span>
    </>
  );
}
