/** The seventh version of the fleet's schema: what a user leaves behind goes with the user, and nothing that is locked is waited for. */
import { counted } from "./ceilings.ts";

/** Rows of a deleted user; those that are locked stay for a while, where they mean nothing. */
function taken(table: string): string {
  return `DELETE FROM weir.${table} WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM weir.${table} WHERE user_id = who FOR UPDATE SKIP LOCKED))`;
}

export const REMOVAL = `
CREATE FUNCTION weir.clear_user() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = weir, pg_temp AS $$
DECLARE who uuid := OLD.id;
BEGIN
  ${["lease", "usage_hour", "usage_total", "turn"].map((table) => `${taken(table)};`).join("\n  ")}
  RETURN NULL;
END $$;
CREATE TRIGGER clear AFTER DELETE ON weir.app_user FOR EACH ROW EXECUTE FUNCTION weir.clear_user();

-- As in version 1, with sums that can be added to, and over what a deleted user of this id may have left.
CREATE OR REPLACE FUNCTION weir.publish_listener(
  tag text, listener_id text, kind text, first bigint, records jsonb, by_node text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = weir, pg_temp AS $$
DECLARE one jsonb;
BEGIN
  IF NOT weir.may_write(tag) THEN
    RAISE EXCEPTION 'the login % may not make listener %', session_user, tag USING ERRCODE = '42501';
  END IF;
  INSERT INTO weir.listener VALUES (tag, listener_id, kind, first) ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN RETURN false; END IF;
  FOR one IN SELECT * FROM jsonb_array_elements(records) LOOP
    PERFORM weir.put_user(tag, one);
    INSERT INTO weir.usage_total VALUES (
      (one->>'id')::uuid, (one->>'generation')::integer, ${counted("one->'upload'")}, ${counted("one->'download'")})
    ON CONFLICT (user_id, generation) DO UPDATE SET upload = excluded.upload, download = excluded.download;
  END LOOP;
  INSERT INTO weir.change (listener, revision, kind) VALUES (tag, first, 'publish');
  INSERT INTO weir.audit (login, node, listener, kind) VALUES (session_user, by_node, tag, 'publish');
  PERFORM pg_notify('weir_change', tag);
  RETURN true;
END $$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA weir FROM PUBLIC;
GRANT EXECUTE ON FUNCTION weir.seen TO weir_admin, weir_node;
`;
