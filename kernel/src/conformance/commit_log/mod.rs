//! The suite of [`CommitLog`](crate::ports::CommitLog).

mod contents;
mod keys;
mod positions;
mod races;
mod reads;

use super::Stores;
use super::cases::run_cases;

/// Holds a log to its two unique keys (R44), its positions (R80), and to giving back what it was
/// given. Needs `log`.
///
/// # Panics
/// Where a case fails.
pub async fn suite(fresh: impl AsyncFn() -> Stores) {
    run_cases!(
        "commit_log",
        fresh,
        [
            keys::r44_a_taken_version_is_a_version_conflict,
            keys::r44_a_taken_request_id_is_a_duplicate_request,
            keys::r44_where_both_keys_are_taken_either_is_named,
            keys::r54_a_commit_appended_again_is_not_there_twice,
            keys::r44_a_request_id_belongs_to_its_tenant_and_type,
            keys::r44_a_request_id_is_taken_whoever_comes_with_it,
            keys::r44_a_version_belongs_to_its_tenant_type_and_id,
            keys::r44_a_refused_append_takes_neither_key,
            keys::r44_a_refused_append_changes_nothing,
            keys::r44_aggregate_ids_that_look_alike_are_different,
            keys::r44_request_ids_that_look_alike_are_different,
            keys::r44_tenants_that_look_alike_are_different,
            keys::r44_types_that_look_alike_are_different,
            keys::r44_the_longest_ids_are_told_apart_by_their_last_character,
            positions::r80_positions_begin_at_1_in_each_partition,
            positions::r80_positions_follow_the_order_of_commits,
            positions::r80_refused_appends_leave_no_hole,
            positions::r80_positions_are_contiguous_under_many_appenders,
            positions::r80_a_reader_never_sees_a_position_before_the_one_below,
            positions::r80_what_a_head_says_can_be_read,
            races::r44_of_many_with_one_request_id_one_wins,
            races::r44_of_many_with_one_version_one_wins,
            races::r44_a_conflict_never_fails_a_neighbour,
            races::a_caller_that_goes_away_leaves_nothing_half_done,
            contents::a_commit_comes_back_whole,
            contents::the_log_gives_position_and_time_itself,
            contents::no_owner_space_and_principal_come_back_as_none,
            contents::texts_come_back_byte_for_byte,
            contents::numbers_come_back_byte_for_byte,
            contents::json_comes_back_byte_for_byte,
            contents::an_entry_of_a_mebibyte_comes_back_whole,
            contents::many_events_come_back_in_order,
            contents::results_come_back_byte_for_byte,
            contents::headers_come_back_whole,
            reads::a_commit_can_be_read_as_soon_as_it_is_appended,
            reads::an_aggregate_is_read_in_pages,
            reads::an_aggregate_is_read_from_after_to_up_to,
            reads::an_aggregate_is_read_without_its_look_alikes,
            reads::a_partition_is_read_in_pages,
            reads::what_is_not_there_is_read_as_nothing,
            reads::heads_answer_for_the_partitions_asked,
        ]
    );
}
