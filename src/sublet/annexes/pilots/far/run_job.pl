# Runs a job for HTCondor, as its USER_JOB_WRAPPER. Without it a job could be taken for completed that was only stopped:
# a site that stops a pilot signals all of its processes at once, and HTCondor may see the end of the job before it sees
# that it is to end itself. Such an end is kept back until HTCondor stops the job too. All else passes through.

use strict;
use warnings;
use Errno ();
use POSIX ();

my $PATIENCE = 20;    # seconds for HTCondor to stop a job that the site has stopped
my $MOMENT = 5;       # tenths of a second within which a signal to all processes has reached all of them
my ($job, $by_site, $by_starter) = (0, 0, 0);
my $starter = getppid();

sub hear {
    my ($signal, $from) = @_;
    if ($from->{pid} == $starter) {
        kill $signal, $job if $job;    # HTCondor signals this process alone, a site all of them
        $by_starter = 1;
    }
    elsif ($from->{uid} != $<) {
        $by_site = 1;                  # someone who isn't the job's owner: what a job does to itself is its own affair
    }
}

sub listen_to_signals {
    for my $number (map { POSIX->can("SIG$_")->() } qw(HUP INT QUIT USR1 USR2 TERM XCPU)) {
        my $action = POSIX::SigAction->new(sub { hear($number, $_[1]) }, POSIX::SigSet->new, POSIX::SA_SIGINFO());
        POSIX::sigaction($number, $action);
    }
}

sub run_program {
    $SIG{$_} = 'DEFAULT' for qw(HUP INT QUIT);    # ignored by what a shell starts in the background, as the pilot was
    no warnings 'exec';
    exec { $ARGV[0] } @ARGV;
    # HTCondor would start a job again and again if this were written to _CONDOR_WRAPPER_ERROR_FILE. Programs that can't be
    # executed are mostly found before (check_job).
    print STDERR "$ARGV[0]: $!\n";
    POSIX::_exit($!{ENOENT} ? 127 : 126);
}

sub nap {
    select undef, undef, undef, 0.1;
}

sub end_like {
    my ($status) = @_;
    my $signal = $status & 127;
    if ($signal) {
        $SIG{$_} = 'DEFAULT' for qw(HUP INT QUIT USR1 USR2 TERM XCPU);
        kill $signal, $$;
    }
    POSIX::_exit($signal ? 128 + $signal : $status >> 8);
}

my $all = POSIX::SigSet->new;
$all->fillset;
my $none = POSIX::SigSet->new;
POSIX::sigprocmask(POSIX::SIG_SETMASK(), $all);    # nothing is missed between the fork and the first look
$job = fork;
die "it can't be started: $!\n" unless defined $job;
if (!$job) {
    POSIX::sigprocmask(POSIX::SIG_SETMASK(), $none);
    run_program();
}
listen_to_signals();
POSIX::sigprocmask(POSIX::SIG_SETMASK(), $none);
1 while waitpid($job, 0) < 0 && $! == POSIX::EINTR();
my $status = $?;
$job = 0;
for (my $tries = $MOMENT; $status && !$by_site && !$by_starter && $tries; $tries--) {
    nap();    # the signal that ended it may be on its way to this process
}
for (my $tries = 10 * $PATIENCE; $by_site && !$by_starter && $tries; $tries--) {
    nap();
}
end_like($status);
