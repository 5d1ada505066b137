"""Which HTTP status a refusal has: the one table, by its code.

    401  nobody is signed in          403  not for this person        404  not there, or not for this person to see
    409  not in the state things are  422  the content is wrong       413  it is too large
    429  too often                    503  the database is away

What only commands and workers meet is in none of them, nor is an error of the database that nobody foresaw: a request
that met one met a mistake of ours, and is told as 500.
"""

from datetime import UTC, datetime
from http import HTTPStatus

from mutirao.errors import FlowError, MutiraoError, OperatorError, TooManyAttempts

_BY_STATUS: dict[int, str] = {
    401: "not_signed_in wrong_credentials",
    403: "forbidden person_disabled csrf_missing wrong_origin",
    404: """unknown_application unknown_batch unknown_class unknown_comment unknown_database unknown_file unknown_filter unknown_flow unknown_instance unknown_job unknown_model
            unknown_ordering unknown_path unknown_person unknown_role unknown_schedule unknown_session unknown_token
            unknown_message unknown_setting unknown_upload unknown_version unknown_webhook""",
    405: "wrong_method",
    409: """changed_meanwhile class_held critical_task definition_busy filter_exists final_blocked flow_exists flow_live flow_pinned in_use instance_busy instance_cancelled
            instance_closed instance_suspended item_finished item_moved item_not_held item_not_ready item_taken
            instance_undoing job_not_failed job_pending job_running task_not_done task_not_started unknown_safe_point key_under_way not_received query_failed last_administrator lease_lost name_taken not_an_exception not_disconnected not_suspended
            role_used shown_once too_many try_again upload_incomplete""",
    413: "file_too_large pdl_too_large too_large",
    422: """attempt_missing attribute_reserved child_circle condition_failed condition_refused condition_syntax
            condition_too_long condition_type dependency_cycle duplicate_name file_mismatch flow_invalid
            key_reused missing_attribute never_runs never_starts
            not_an_item not_searchable nothing_fires pdl_syntax pdl_unused too_deep unknown_attribute unknown_task unknown_zone wrong_body
            weak_password wrong_call wrong_cron wrong_output wrong_substitute wrong_type wrong_url""",
    429: "too_many_attempts too_many_streams",
    503: """disk_full not_allowed not_open schema_too_new schema_too_old server_lost server_start_failed server_too_old
            server_unreachable stopping took_too_long""",
}
STATUSES: dict[str, int] = {code: status for status, codes in _BY_STATUS.items() for code in codes.split()}

_ELSEWHERE = """
    ambiguous_task backup_failed clock_not_movable data_folder_version database_error database_not_empty database_url
    export_failed export_running extra_missing file_exists flow_not_found home_not_empty home_not_yours
    home_unreachable home_unusable internal_error migration_changed migration_failed migration_numbers
    module_broken module_not_found no_embedded_server no_such_file no_system_user not_a_flow not_quiet
    nothing_to_back_up nothing_to_do otel_missing otel_not_set_up output_failed pages_not_built port_unavailable restore_failed
    signature_invalid socket_folder_taken unknown_tour upgrade_not_allowed usage wrong_setting
"""
ELSEWHERE = frozenset(_ELSEWHERE.split())
"""Codes that no request should meet."""

SOON = 1
"""Seconds after which the same may well go through."""
_LONGEST_WAIT = 900
_RETRY_AFTER = {"definition_busy", "instance_busy", "try_again", "key_under_way"}


def status_of(error: MutiraoError) -> int:
    known = STATUSES.get(error.code)
    if known == HTTPStatus.NOT_FOUND and isinstance(error, FlowError):
        return HTTPStatus.UNPROCESSABLE_ENTITY  # what a definition names is not what the address names
    if known is not None:
        return known
    if error.code in ELSEWHERE or isinstance(error, OperatorError):
        return 500
    return 422 if isinstance(error, FlowError) else 409


def retry_after(error: MutiraoError, status: int) -> int | None:
    """In how many seconds to ask again."""
    if isinstance(error, TooManyAttempts):
        return max(SOON, min(_LONGEST_WAIT, round((error.retry_at - datetime.now(UTC)).total_seconds())))
    return SOON if status == 503 or error.code in _RETRY_AFTER else None  # noqa: PLR2004 statuses have no better names
